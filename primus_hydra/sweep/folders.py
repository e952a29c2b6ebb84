"""The sweep's folder: who holds it, and what is written into it beside the runs' own records."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from primus_hydra.destination import mark_checkpoints
from primus_hydra.errors import format_problem
from primus_hydra.export import write_run_folder
from primus_hydra.launch import expected_steps
from primus_hydra.points import Plan, Point
from primus_hydra.redaction import redact_all, secret_values
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError, RunLockedError
from primus_hydra.tell import tell

_POLL_S = 0.2
_STOP_S = 30.0
"""What a worker may need beyond `run.grace_s` to stop a trainer and to record it."""


@contextlib.contextmanager
def held_sweep(folder: Path) -> Iterator[None]:
    """Make the sweep's folder and hold its lock: one program at a time starts runs there.

    Raises:
        RunLockedError: another one does.
        RunFolderError, OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(RunFolder(folder).locked())
        except RunLockedError as error:
            raise RunLockedError(
                f"The sweep folder {folder} is in use: another start of this sweep is running. "
                "Wait for it, stop it, or start this sweep in another folder with sweep.dir=DIR."
            ) from error
        yield


def await_workers(runs: Sequence[Point]) -> None:
    """Wait for workers of an earlier start that was killed: they stop their runs by themselves and record it.

    Only for the holder of the sweep's lock.

    Raises:
        RunLockedError: a run goes on after the time that stopping it may take, so somebody else executes it.
    """
    for run in runs:
        if run.plan is None or _is_free(run.folder):
            continue
        patience_s = run.plan.composition.settings.run.grace_s + _STOP_S
        tell(f"Waiting up to {patience_s:g} s for the worker of an earlier start to end: {run.folder.path.name}")
        deadline = time.monotonic() + patience_s
        while not _is_free(run.folder):
            if time.monotonic() > deadline:
                raise RunLockedError(
                    f"The run folder {run.folder.path} is being executed by a worker that this sweep did not start. "
                    "Wait for it, or stop it."
                )
            time.sleep(_POLL_S)


def _is_free(folder: RunFolder) -> bool:
    if not folder.lock_file.exists():
        return True
    try:
        with folder.locked():
            return True
    except RunLockedError:
        return False


def remove_leftovers(sweep: Path) -> None:
    """Remove what killed programs left half-written in the sweep's folder and in those of its runs.

    Only for the holder of the sweep's lock. A run that somebody executes all the same is left alone.

    Raises:
        OSError: a folder cannot be written.
    """
    RunFolder(sweep).remove_half_written()
    for folder in [RunFolder(path) for path in sweep.iterdir() if path.is_dir()]:
        # Without a lock file no plan was ever written there, so nobody executes it.
        lock = folder.locked() if folder.lock_file.exists() else contextlib.nullcontext()
        with contextlib.suppress(RunLockedError), lock:
            folder.remove_half_written()
            folder.reserve_file.unlink(missing_ok=True)


def write_plans(plans: Iterable[Plan]) -> None:
    """Write run folders, ready to be executed.

    Raises:
        OSError, RunFolderError: one of them cannot be written; the record that was there is as it was.
    """
    for plan in plans:
        write_run_folder(plan)
        mark_checkpoints(plan.keys, {"identity": plan.identity})


def write_invalid_record(point: Point) -> None:
    """Record that a point never runs, with the whole reason; a record that is there already is kept.

    Raises:
        OSError: the folder cannot be written.
    """
    if point.folder.run_json.exists():
        return
    record = {
        "schema": 1,
        "name": point.folder.path.name,
        "state": "invalid",
        "failure": None,
        "reason": " ".join(problem.what for problem in point.problems),
        "point": point.number,
        "repeat": point.repeat,
        "overrides": list(point.overrides),
        "problems": [format_problem(problem) for problem in point.problems],
        "attempt": 0,
        "result": None,
    }
    point.folder.path.mkdir(parents=True, exist_ok=True)
    point.folder.write_record(redact_all(record, secret_values(os.environ)))


def skip_run(folder: RunFolder, reason: str) -> None:
    """Say of a run that completed a rung that it does not go on; its figures are kept.

    Raises:
        OSError, RunFolderError: the record cannot be read or written.
    """
    with folder.locked():
        record = folder.read_record()
        folder.write_record(record | {"state": "skipped", "failure": "rung", "reason": reason})


def describe_write_error(error: OSError | RunFolderError) -> str:
    """One sentence: which file, and what the operating system has against it."""
    if isinstance(error, RunFolderError) or error.strerror is None:
        return str(error)
    place = f"{error.filename} " if error.filename else "The sweep's folder "
    return f"{place}cannot be written: {error.strerror}."


def read_if_there(folder: RunFolder) -> Record | None:
    """The run's record; None where there is none that can be read."""
    try:
        return folder.read_record()
    except RecordError:
        return None


def count_planned_steps(record: Record) -> int | None:
    """Steps that the run's last attempt was to make; None where its record does not tell."""
    composed = record.get("composed")
    return expected_steps(composed) if isinstance(composed, Mapping) else None
