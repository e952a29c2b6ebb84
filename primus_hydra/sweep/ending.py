"""What became of one worker and its run folder."""

import signal
from dataclasses import dataclass, field

from primus_hydra.classify import exit_signal, signal_name
from primus_hydra.runs import Record, RecordError, RunFolder
from primus_hydra.sweep.pace import worker_pid
from primus_hydra.worker import EXIT_NOT_STARTED

_WORTH_A_RETRY = frozenset({("failed", "crash"), ("timed_out", "hung"), ("abandoned", None)})
_FAILURES = frozenset({"failed", "timed_out", "abandoned", "refused"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How one attempt ended."""

    state: str
    """As in run.json; `abandoned` where the worker died, `refused` where the folder could not be executed."""
    failure: str | None = None
    reason: str = ""
    record: Record = field(default_factory=dict)
    """Content of run.json; empty unless the attempt came to its end."""

    @property
    def is_failure(self) -> bool:
        """Whether `sweep.fail_fast` stops here. Stopped on purpose, by us or by a person, is no failure."""
        return self.state in _FAILURES

    @property
    def is_worth_a_retry(self) -> bool:
        """Whether the same configuration may succeed next time: a crash, a hang, a worker that died."""
        return (self.state, self.failure) in _WORTH_A_RETRY


def read_ending(folder: RunFolder, *, pid: int, exit_code: int, output: str) -> Ending:
    """Judge an attempt whose worker is gone.

    Args:
        folder: what it executed.
        pid: of the worker.
        exit_code: of the worker; negative: the signal that ended it.
        output: the end of what the worker printed.
    """
    if exit_code == EXIT_NOT_STARTED:
        return Ending(state="refused", reason=output or f"{folder.path} cannot be executed.")
    number = exit_signal(exit_code)
    how = f"was ended by {signal_name(number)}" if number is not None else f"ended with exit code {exit_code}"
    try:
        record = folder.read_record()
    except RecordError as error:
        return Ending(state="refused", reason=str(error))
    if worker_pid(record) != pid and number == signal.SIGTERM:
        return Ending(state="interrupted", reason="Interrupted before the run began.")
    if worker_pid(record) != pid:
        last_line = (output.splitlines() or ["it printed nothing"])[-1]
        return Ending(state="abandoned", reason=f"The worker {how} before the run began: {last_line}")
    if record["state"] == "running":
        return Ending(state="abandoned", reason=f"The worker {how}, and the run with it.")
    return Ending(state=record["state"], failure=record["failure"], reason=record["reason"], record=record)
