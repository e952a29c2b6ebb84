"""Execute ONE run folder: start the trainer, watch it, write the record.

    python -m primus_hydra.worker RUN_DIR

Exit codes: 0 completed, 1 failed, 2 the folder cannot be executed, 130 interrupted. Imports neither jax nor maxtext.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from primus_hydra.classify import Outcome, Verdict, classify, exit_signal, signal_name
from primus_hydra.launch import (
    DEFAULT_LOG_PERIOD,
    child_environment,
    expected_steps,
    read_plan,
    resolved_steps,
    sink_levels,
    trainer_argv,
)
from primus_hydra.log_lines import Line, LogPump
from primus_hydra.maxtext.metrics import MetricsTail, StepHistory, parse_log_line, parse_platform_line
from primus_hydra.progress import RunProgress, Voice
from primus_hydra.redaction import redact, secret_values
from primus_hydra.report.run_table import run_table
from primus_hydra.results import compute_result, resumed_at_step
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError, read_json, this_worker
from primus_hydra.supervisor import Exit, Launch, Limits, StopReason, supervise

EXIT_CODES = {"completed": 0, "interrupted": 130}
EXIT_FAILED = 1
EXIT_NOT_STARTED = 2
_RESERVE_BYTES = 1 << 16


class _Watch:
    """Takes everything that one run tells: its output and its metrics."""

    def __init__(
        self, folder: RunFolder, progress: RunProgress, voice: Voice, *, levels: tuple[int, int], secrets: list[str]
    ) -> None:
        self.history = StepHistory()
        self.seen: dict[str, Any] = {}
        """What the log tells about the machine, for trainers that write no child.json."""
        self.pump = LogPump(
            folder.train_log,
            file_level=levels[0],
            console_level=levels[1],
            secrets=secrets,
            say=voice.say,
            read=self._read,
        )
        self._metrics = MetricsTail(folder.metrics_jsonl)
        self._progress = progress

    def poll(self) -> None:
        self.history.add_metrics(self._metrics.poll())

    def output(self, data: bytes) -> None:
        self.pump.feed(data)

    def update(self) -> int:
        self._progress.update(self.history)
        return self.history.num_seen

    def _read(self, line: Line) -> None:
        self.seen |= parse_platform_line(line.text)
        self._progress.read(line.text)
        if line.is_step and (record := parse_log_line(line.text)):
            self.history.add_log(record)


def execute(
    folder: RunFolder,
    *,
    console: Console,
    secret_env: Mapping[str, str] | None = None,
    expect_fingerprint: str | None = None,
) -> Record:
    """Run the folder's trainer to its end, whatever that is, and record it.

    Args:
        folder: a planned run folder, or one whose earlier attempt ended.
        console: where progress and log lines are shown.
        secret_env: variables for the trainer alone that no file may hold.
        expect_fingerprint: of the plan that the caller wrote; None: execute whatever is planned there.

    Returns:
        The record as it was written to run.json, its state now completed, failed, timed_out or interrupted.

    Raises:
        RunFolderError: the folder cannot be executed: no valid plan in it, another one than expected, not writable,
            or another worker has it. Nothing was started, and its record is as it was.
    """
    folder = RunFolder(folder.path.absolute())
    with folder.locked() as lock_fd:
        record, command = read_plan(folder)
        if expect_fingerprint not in (None, record.get("fingerprint")):
            raise RunFolderError(
                f"Another start has replaced the plan in this folder, {folder.path}: it would train something else. "
                "Nothing was started. Give each configuration a folder of its own (run.dir=DIR)."
            )
        try:
            return _run(folder, record, command, Voice(console), secret_env=secret_env or {}, lock_fd=lock_fd)
        finally:
            with contextlib.suppress(OSError):
                folder.reserve_file.unlink(missing_ok=True)


def _begin(folder: RunFolder, record: Record) -> Record:
    """Move an earlier attempt's files away and say that this one runs.

    Raises:
        OSError: there is no room for the record of the run and of its end; the record on disk is as it was.
    """
    folder.reserve_file.write_bytes(os.urandom(_RESERVE_BYTES))
    folder.rotate_attempt(max(1, record["attempt"]))
    folder.train_log.touch()
    running = {
        **record,
        "state": "running",
        "attempt": record["attempt"] + 1,
        "worker": this_worker(),
        "log": str(folder.train_log),
        "started_at": _now(),
        **dict.fromkeys(("failure", "ended_at", "wall_s", "exit_code", "signal", "resumed_at_step", "result")),
        "reason": "",
        "last_error_lines": [],
    }
    folder.write_record(running)
    return running


def _run(
    folder: RunFolder,
    record: Record,
    command: Mapping[str, Any],
    voice: Voice,
    *,
    secret_env: Mapping[str, str],
    lock_fd: int,
) -> Record:
    run = record["settings"]["run"]
    env = {**os.environ, **command["env"], **secret_env}
    secrets = secret_values(env)
    launch = Launch(
        argv=trainer_argv(folder, command), env=child_environment(env, command), cwd=str(folder.path), lock_fd=lock_fd
    )
    limits = Limits(timeout_s=run["timeout_s"], hang_after_s=run["hang_after_s"], grace_s=run["grace_s"])
    with _writing(folder, record):
        record = _begin(folder, record)
        progress = RunProgress(
            voice,
            total_steps=expected_steps(record["composed"]),
            log_period=record["composed"].get("log_period", {"value": DEFAULT_LOG_PERIOD})["value"],
            first_phase="importing MaxText" if command["trainer"] is None else "starting the trainer",
        )
        watch = _Watch(folder, progress, voice, levels=sink_levels(record["private"]), secrets=secrets)
    started, oom_kills = time.monotonic(), _count_oom_kills()

    def close() -> None:
        progress.close()
        watch.pump.close()

    def end(exit_: Exit) -> Record:
        wall_s, oom_killed = time.monotonic() - started, _count_oom_kills() > oom_kills
        ended = _end(folder, record, watch, exit_, oom_killed=oom_killed, wall_s=wall_s, secrets=secrets)
        _write_end(folder, ended, voice)
        return ended

    try:
        exit_ = supervise(launch, limits, watch)
        close()
    except BaseException as error:
        # Our own code failed. The trainer is gone by now, and its end must be on record all the same.
        with contextlib.suppress(BaseException):
            close()
        problem = f"the worker itself failed ({type(error).__name__}: {error})"
        stop: StopReason | None = "interrupted" if isinstance(error, KeyboardInterrupt) else None
        end(Exit(returncode=None, max_rss_bytes=None, stop=stop, stop_signal=None, problem=problem))
        raise
    return end(exit_)


def _end(
    folder: RunFolder,
    record: Record,
    watch: _Watch,
    exit_: Exit,
    *,
    oom_killed: bool,
    wall_s: float,
    secrets: Sequence[str],
) -> Record:
    """The record with everything that is known at the end.

    Secrets are masked in the texts that come from outside, and nowhere else: a variable with a secret's name may
    hold an ordinary word (API_KEY=completed), and the plan's own values were masked when it was written.
    """
    records = watch.history.records()
    child = watch.seen | _read_if_there(folder.child_json)
    verdict: Verdict = classify(
        Outcome(
            exit=exit_,
            expected_steps=resolved_steps(record["composed"], _read_if_there(folder.effective_json)),
            records=records,
            tail=tuple(watch.pump.tail),
            oom_killed=oom_killed,
        )
    )
    number = exit_signal(exit_.returncode)
    versions = child.get("versions")
    return {
        **record,
        "state": verdict.state,
        "failure": verdict.failure,
        "reason": redact(verdict.reason, secrets),
        "last_error_lines": [redact(line, secrets) for line in verdict.last_error_lines],
        "warnings": [*record["warnings"], *(redact(text, secrets) for text in [watch.pump.problem] if text)],
        "versions": record["versions"] | (versions if isinstance(versions, dict) else {}),
        "ended_at": _now(),
        "wall_s": round(wall_s, 3),
        "exit_code": exit_.returncode if exit_.returncode is not None and exit_.returncode >= 0 else None,
        "signal": signal_name(number) if number is not None else None,
        "resumed_at_step": resumed_at_step(records, child),
        "result": compute_result(
            records,
            warmup_steps=record["settings"]["run"]["warmup_steps"],
            child=child,
            max_rss_bytes=exit_.max_rss_bytes,
        ),
    }


def _count_oom_kills() -> int:
    """Kills by the kernel's out-of-memory killer since boot, memory limits of containers included; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _read_if_there(path: Path) -> dict[str, Any]:
    with contextlib.suppress(RecordError):
        return read_json(path)
    return {}


def _write_end(folder: RunFolder, record: Record, voice: Voice) -> None:
    """Write the record; on a full disk, into the room that was kept for it."""
    try:
        folder.write_record(record)
    except OSError:
        folder.reserve_file.unlink(missing_ok=True)
        try:
            folder.write_record(record)
        except OSError as error:
            voice.say(f"The end of the run could not be recorded in {folder.run_json}: {error.strerror}.")


@contextlib.contextmanager
def _writing(folder: RunFolder, before: Record) -> Iterator[None]:
    """Tell an OSError as what it means before anything was started, and leave the record as it was."""
    try:
        yield
    except OSError as error:
        with contextlib.suppress(OSError, RecordError):
            folder.reserve_file.unlink(missing_ok=True)
            if folder.read_record() != before:
                folder.write_record(before)
        raise RunFolderError(
            f"The run folder {folder.path} cannot be written: {error.strerror}. Nothing was started; "
            "make room there, or start the run in another folder."
        ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def exit_code(record: Mapping[str, Any]) -> int:
    """What a program that ran this record ends with."""
    return EXIT_CODES.get(record["state"], EXIT_FAILED)


def main(argv: list[str]) -> int:
    """Execute the run folder named on the command line; returns the exit code."""
    if len(argv) != 1:
        print("Usage: python -m primus_hydra.worker RUN_DIR", file=sys.stderr)
        return EXIT_NOT_STARTED
    console = Console()
    try:
        record = execute(RunFolder(Path(argv[0])), console=console)
    except RunFolderError as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_STARTED
    with Voice(console).attempt():
        console.print(run_table(record))
    return exit_code(record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
