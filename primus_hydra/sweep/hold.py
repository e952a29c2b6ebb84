"""Who may start runs in a sweep's folder: one program at a time, after the workers of an earlier one have ended."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from primus_hydra.points import Point
from primus_hydra.runs import RunFolder, RunLockedError
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
