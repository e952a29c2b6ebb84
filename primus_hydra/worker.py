"""Execute ONE run folder: start the trainer, watch it, write the record.

    python -m primus_hydra.worker RUN_DIR

Exit codes: 0 completed, or skipped because the program that started this one said so; 1 failed; 2 the folder cannot be
executed; 130 interrupted. Imports neither jax nor maxtext.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from primus_hydra.attempt_record import before_the_start, begin_attempt, end_attempt, write_end
from primus_hydra.interrupts import CaughtSignals, caught_signals
from primus_hydra.launch import child_environment, read_plan, trainer_argv
from primus_hydra.listener import RunListener
from primus_hydra.parent import ParentLink
from primus_hydra.progress import Voice
from primus_hydra.reaper_link import Launch
from primus_hydra.redaction import secret_values
from primus_hydra.report.run_table import run_table
from primus_hydra.runs import Record, RunFolder, RunFolderError
from primus_hydra.supervisor import Exit, Limits, StopReason, supervise
from primus_hydra.tell import prepare_streams

EXIT_CODES = {"completed": 0, "skipped": 0, "interrupted": 130}
EXIT_FAILED = 1
EXIT_NOT_STARTED = 2
_PARENTS_PIPE = 0


def execute(
    folder: RunFolder,
    *,
    console: Console,
    secret_env: Mapping[str, str] | None = None,
    expect_fingerprint: str | None = None,
    parent: ParentLink | None = None,
) -> Record:
    """Run the folder's trainer to its end, whatever that is, and record it.

    Args:
        folder: a planned run folder, or one whose earlier attempt ended.
        console: where progress and log lines are shown.
        secret_env: variables for the trainer alone that no file may hold.
        expect_fingerprint: of the plan that the caller wrote; None: execute whatever is planned there.
        parent: a program that may stop the run, and without which it does not go on.

    Returns:
        The record as it was written to run.json, its state now completed, failed, timed_out, interrupted or skipped.

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
        env = {**os.environ, **command["env"], **(secret_env or {})}
        launch = Launch(
            argv=trainer_argv(folder, command),
            env=child_environment(env, command),
            cwd=str(folder.path),
            lock_fd=lock_fd,
        )
        secrets = secret_values(env)
        with contextlib.ExitStack() as stack:
            stack.callback(_remove_reserve, folder)
            signals = stack.enter_context(caught_signals())
            voice = Voice(console)
            with before_the_start(folder, record):
                folder.remove_half_written()
                record = begin_attempt(folder, record, launch.env)
                listener = RunListener(folder, record, command, voice, secrets)
            ended = _run(folder, record, launch, listener, voice, secrets=secrets, signals=signals, parent=parent)
    if signals.arrived and ended["state"] != "interrupted":
        signal.raise_signal(signals.arrived[0])  # it came too late for this run, but was meant for this program
    return ended


def _run(
    folder: RunFolder,
    record: Record,
    launch: Launch,
    listener: RunListener,
    voice: Voice,
    *,
    secrets: Sequence[str],
    signals: CaughtSignals,
    parent: ParentLink | None,
) -> Record:
    run = record["settings"]["run"]
    limits = Limits(timeout_s=run["timeout_s"], hang_after_s=run["hang_after_s"], grace_s=run["grace_s"])
    started, oom_kills = time.monotonic(), _count_oom_kills()

    def end(exit_: Exit) -> Record:
        wall_s, oom_killed = time.monotonic() - started, _count_oom_kills() > oom_kills
        ended = end_attempt(folder, record, listener, exit_, oom_killed=oom_killed, wall_s=wall_s, secrets=secrets)
        write_end(folder, ended, voice)
        return ended

    try:
        exit_ = supervise(launch, limits, listener, signals=signals, parent=parent)
        listener.close()
    except BaseException as error:
        # Our own code failed. The trainer is gone by now, and its end must be on record all the same.
        with contextlib.suppress(BaseException):
            listener.close()
        problem = f"the worker itself failed ({type(error).__name__}: {error})"
        stop: StopReason | None = "interrupted" if isinstance(error, KeyboardInterrupt) else None
        end(Exit(returncode=None, max_rss_bytes=None, stop=stop, stop_signal=None, problem=problem))
        raise
    return end(exit_)


def _remove_reserve(folder: RunFolder) -> None:
    with contextlib.suppress(OSError):
        folder.reserve_file.unlink(missing_ok=True)


def _count_oom_kills() -> int:
    """Kills by the kernel's out-of-memory killer since boot, memory limits of containers included; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def exit_code(record: Mapping[str, Any]) -> int:
    """What a program that ran this record ends with."""
    return EXIT_CODES.get(record["state"], EXIT_FAILED)


def main(argv: Sequence[str]) -> int:
    """Execute the run folder named on the command line; returns the exit code."""
    prepare_streams()
    parser = argparse.ArgumentParser(prog="python -m primus_hydra.worker", description="Execute one run folder.")
    parser.add_argument("run_dir", metavar="RUN_DIR", type=Path, help="a planned run folder")
    parser.add_argument("--expect", metavar="FINGERPRINT", help="refuse a folder with another plan than this")
    parser.add_argument(
        "--under-parent",
        action="store_true",
        help="standard input is a pipe from the program that starts this one: the run ends when the pipe does, or with "
        'the line {"stop": WORD, "reason": SENTENCE}; nothing is shown, train.log has everything',
    )
    options = parser.parse_args(argv)
    try:
        parent = ParentLink(_PARENTS_PIPE) if options.under_parent else None
    except (OSError, ValueError) as error:
        parser.error(f"--under-parent needs a pipe as standard input, but {error}.")
    console = Console(quiet=True, force_terminal=False) if options.under_parent else Console()
    try:
        record = execute(RunFolder(options.run_dir), console=console, expect_fingerprint=options.expect, parent=parent)
    except RunFolderError as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_STARTED
    except KeyboardInterrupt:
        return EXIT_CODES["interrupted"]
    with Voice(console).attempt():
        console.print(run_table(record))
    return exit_code(record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
