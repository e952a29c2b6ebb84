"""Execute ONE run folder: start the trainer, watch it, write the record.

    python -m primus_hydra.worker RUN_DIR

Exit codes: 0 completed, 1 failed, 2 the folder cannot be executed, 130 interrupted. Imports neither jax nor maxtext.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from primus_hydra.classify import Outcome, Verdict, classify, exit_signal, signal_name
from primus_hydra.launch import child_environment, sink_levels, trainer_argv
from primus_hydra.log_lines import Line, LogPump
from primus_hydra.maxtext.metrics import MetricsTail, StepHistory, parse_log_line, parse_platform_line
from primus_hydra.progress import RunProgress, Voice
from primus_hydra.redaction import redact_all, secret_values
from primus_hydra.report.run_table import run_table
from primus_hydra.results import compute_result
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError, read_json, this_worker
from primus_hydra.supervisor import Exit, Launch, Limits, StopReason, supervise

EXIT_CODES = {"completed": 0, "interrupted": 130}
EXIT_FAILED = 1
EXIT_NOT_STARTED = 2
_RESERVE_BYTES = 1 << 16
_RECORD_FIELDS = ("name", "composed", "private", "settings", "warnings", "versions", "attempt")
_RUN_FIELDS = ("timeout_s", "hang_after_s", "grace_s", "warmup_steps")
_COMMAND_FIELDS = ("trainer", "maxtext_args", "env", "unset_env")


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


def execute(folder: RunFolder, *, console: Console, secret_env: Mapping[str, str] | None = None) -> Record:
    """Run the folder's trainer to its end, whatever that is, and record it.

    Args:
        folder: a planned run folder, or one whose earlier attempt ended.
        console: where progress and log lines are shown.
        secret_env: variables for the trainer alone that no file may hold.

    Returns:
        The record as it was written to run.json, its state now completed, failed, timed_out or interrupted.

    Raises:
        RunFolderError: the folder cannot be executed: no valid plan in it, not writable, or another worker has it.
            Nothing was started.
    """
    folder = RunFolder(folder.path.absolute())
    with folder.locked() as lock_fd:
        record, command = _read_plan(folder)
        levels = sink_levels(record["private"])
        try:
            with _writing(folder):
                record = _begin(folder, record)
            return _run(
                folder, record, command, Voice(console), secret_env=secret_env or {}, levels=levels, lock_fd=lock_fd
            )
        finally:
            with contextlib.suppress(OSError):
                folder.reserve_file.unlink(missing_ok=True)


def _read_plan(folder: RunFolder) -> tuple[Record, dict[str, Any]]:
    """run.json and command.json, with all fields that are needed from now to the end."""
    record, command = folder.read_record(), read_json(folder.command_json)
    missing = [f"run.json: {name}" for name in _RECORD_FIELDS if name not in record]
    missing += [f"run.json: settings.run.{name}" for name in _RUN_FIELDS if name not in _run_settings(record)]
    missing += [f"command.json: {name}" for name in _COMMAND_FIELDS if name not in command]
    if missing:
        raise RecordError(f"{folder.path} is not a complete plan; missing are {', '.join(missing)}.")
    return record, command


def _run_settings(record: Record) -> dict[str, Any]:
    settings: dict[str, Any] = record.get("settings", {}).get("run", {})
    return settings


def _begin(folder: RunFolder, record: Record) -> Record:
    """Move an earlier attempt's files away and say that this one runs."""
    folder.rotate_attempt(max(1, record["attempt"]))
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
    folder.reserve_file.write_bytes(os.urandom(_RESERVE_BYTES))
    return running


def _run(
    folder: RunFolder,
    record: Record,
    command: Mapping[str, Any],
    voice: Voice,
    *,
    secret_env: Mapping[str, str],
    levels: tuple[int, int],
    lock_fd: int,
) -> Record:
    run = _run_settings(record)
    env = {**os.environ, **command["env"], **secret_env}
    secrets = secret_values(env)
    progress = RunProgress(
        voice,
        total_steps=_expected_steps(record["composed"]),
        log_period=record["composed"].get("log_period", {"value": 100})["value"],
        first_phase="importing MaxText" if command["trainer"] is None else "starting the trainer",
    )
    with _writing(folder):
        watch = _Watch(folder, progress, voice, levels=levels, secrets=secrets)
    launch = Launch(
        argv=trainer_argv(folder, command), env=child_environment(env, command), cwd=str(folder.path), lock_fd=lock_fd
    )
    limits = Limits(timeout_s=run["timeout_s"], hang_after_s=run["hang_after_s"], grace_s=run["grace_s"])
    started, oom_kills = time.monotonic(), _count_oom_kills()

    def close() -> None:
        progress.close()
        watch.pump.close()

    def end(exit_: Exit) -> Record:
        wall_s, oom_killed = time.monotonic() - started, _count_oom_kills() > oom_kills
        ended: Record = redact_all(_end(folder, record, watch, exit_, oom_killed=oom_killed, wall_s=wall_s), secrets)
        _write_end(folder, ended, voice)
        return ended

    try:
        exit_ = supervise(launch, limits, watch)
        close()
    except BaseException as error:
        # Our own code failed. The trainer is gone by now, and its end must be on record all the same.
        with contextlib.suppress(Exception):
            close()
        problem = f"the worker itself failed ({type(error).__name__}: {error})"
        stop: StopReason | None = "interrupted" if isinstance(error, KeyboardInterrupt) else None
        end(Exit(returncode=None, max_rss_bytes=None, stop=stop, stop_signal=None, problem=problem))
        raise
    return end(exit_)


def _end(folder: RunFolder, record: Record, watch: _Watch, exit_: Exit, *, oom_killed: bool, wall_s: float) -> Record:
    """The record with everything that is known at the end."""
    records = watch.history.records()
    child = watch.seen | _read_if_there(folder.child_json)
    resolved = _read_if_there(folder.effective_json).get("keys", {})
    composed = record["composed"] | {key: {"value": resolved[key]} for key in _STEP_KEYS if key in resolved}
    verdict: Verdict = classify(
        Outcome(
            exit=exit_,
            expected_steps=_expected_steps(composed),
            records=records,
            tail=tuple(watch.pump.tail),
            oom_killed=oom_killed,
        )
    )
    number = exit_signal(exit_.returncode)
    first = records[0].step if records else 0
    return {
        **record,
        "state": verdict.state,
        "failure": verdict.failure,
        "reason": verdict.reason,
        "last_error_lines": list(verdict.last_error_lines),
        "warnings": [*record["warnings"], *filter(None, [watch.pump.problem])],
        "versions": record["versions"] | child.get("versions", {}),
        "ended_at": _now(),
        "wall_s": round(wall_s, 3),
        "exit_code": exit_.returncode if exit_.returncode is not None and exit_.returncode >= 0 else None,
        "signal": signal_name(number) if number is not None else None,
        "resumed_at_step": child.get("resumed_at_step") or (first or None),
        "result": compute_result(
            records,
            warmup_steps=_run_settings(record)["warmup_steps"],
            child=child,
            max_rss_bytes=exit_.max_rss_bytes,
        ),
    }


_STEP_KEYS = ("steps", "learning_rate_schedule_steps")


def _expected_steps(composed: Mapping[str, Any]) -> int | None:
    """Steps of the whole run; MaxText takes the schedule's length for `steps: -1`, and the other way round."""
    values = (composed.get(key, {}).get("value") for key in _STEP_KEYS)
    return next((int(value) for value in values if isinstance(value, int | float) and value >= 0), None)


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
def _writing(folder: RunFolder) -> Iterator[None]:
    """Tell an OSError as what it means before anything was started."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"The run folder {folder.path} cannot be written: {error.strerror}.") from error


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
