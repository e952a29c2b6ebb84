"""Is the place where a run would write free, ours, and writable? Nothing of another run is ever touched."""

import contextlib
import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from primus_hydra.atomic_files import list_half_written, write_json_atomic
from primus_hydra.errors import Problem
from primus_hydra.identity import Identity, list_differences
from primus_hydra.runs import RecordError, RunFolder, read_json

MARKER = "primus_hydra.json"
"""File beside MaxText's checkpoints that says which configuration made them."""
RULES = frozenset({"unknown_checkpoint"})
"""Names that `run.accept` may hold."""
LENGTH_KEYS = frozenset(
    {"steps", "checkpoint_period", "log_period", "profiler", "skip_first_n_steps_for_profiler", "profiler_steps"}
)
"""Keys that may differ when a run continues from its checkpoint: how long it runs and what it reports."""
_OTHER_PLACE = "Choose another place with run.dir=DIR (for a sweep, sweep.dir=DIR)."
_SCHEDULE = "learning_rate_schedule_steps"


def check_run_folder(folder: RunFolder, identity: Identity) -> list[Problem]:
    """Refuse a folder that cannot be written, holds other files, or belongs to another configuration."""
    try:
        return _check_folder(folder, identity)
    except OSError as error:
        return [Problem(what=f"The run folder {folder.path} cannot be used: {error.strerror}.", fix=_OTHER_PLACE)]


def _check_folder(folder: RunFolder, identity: Identity) -> list[Problem]:
    path = folder.path
    if path.exists() and not path.is_dir():
        return [Problem(what=f"run.dir={path} is a file.", fix="Name a folder that does not exist yet.")]
    if existing := _find_obstacle(path):
        return [
            Problem(
                what=f"The run folder {path} cannot be made: there is no permission to write in {existing}.",
                fix=_OTHER_PLACE,
            )
        ]
    if not path.exists() or set(path.iterdir()) <= {folder.lock_file, *list_half_written(path)}:
        return []
    if not folder.run_json.exists():
        return [
            Problem(
                what=f"The folder {path} is not empty and is not a run folder.",
                fix="Choose a folder that does not exist yet with run.dir=DIR (for a sweep, sweep.dir=DIR).",
                scope="combination",
            )
        ]
    with contextlib.suppress(RecordError):
        if folder.read_record().get("state") == "invalid":  # nothing ever ran here
            return []
    return _compare_with(
        folder.run_json,
        identity,
        what=f"The run folder {path}",
        fix="Choose another folder with run.dir=DIR (for a sweep, sweep.dir=DIR), or remove this one.",
    )


def check_sweep_folder(path: Path) -> list[Problem]:
    """Refuse a folder that no run of a sweep can be written in."""
    try:
        existing = _find_obstacle(path)
        is_run = RunFolder(path).run_json.exists()
    except OSError:  # each point tells what is wrong with such a name
        return []
    if is_run:
        what = f"sweep.dir={path} is the folder of a run."
        return [Problem(what=what, fix="Choose a folder that holds no run.json with sweep.dir=DIR.")]
    if existing is None:
        return []
    why = f"there is no permission to write in {existing}" if existing.is_dir() else f"{existing} is a file"
    what = f"The sweep folder {path} cannot be written: {why}."
    return [Problem(what=what, fix="Choose another place with sweep.dir=DIR.")]


def _find_obstacle(path: Path) -> Path | None:
    """What is there of a path, if no folder can be made or filled in it."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    return None if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK) else existing


def check_output_directory(keys: Mapping[str, Any]) -> list[Problem]:
    """Refuse a local output directory that is a file or lies below one."""
    base = str(keys["base_output_directory"])
    if "://" in base:
        return []
    existing = next((parent for parent in (Path(base), *Path(base).parents) if parent.exists()), Path("/"))
    if existing.is_dir():
        return []
    return [Problem(what=f"base_output_directory={base} cannot be a folder: {existing} is a file.")]


def check_checkpoints(keys: Mapping[str, Any], identity: Identity, accept: Set[str]) -> list[Problem]:
    """Refuse to continue from the checkpoint of another configuration (MaxText resumes whatever is there).

    Only MaxText's keys decide here: a training may go on under another environment or on another chip. Remote folders
    (`gs://...`) are not looked into.
    """
    directory = checkpoint_owner(keys)
    if directory is None or not has_checkpoint(keys):
        return []
    fix = f"Use another run_name or base_output_directory, or remove {directory}."
    if not (directory / MARKER).exists():
        return [
            Problem(
                what=f"{directory} holds checkpoints of unknown origin, and MaxText would continue from them.",
                fix=fix,
                rule="unknown_checkpoint",
                severity="warn" if "unknown_checkpoint" in accept else "refuse",
            )
        ]
    return _compare_with(directory / MARKER, _keys_of(identity), what=f"The checkpoint in {directory}", fix=fix)


def has_checkpoint(keys: Mapping[str, Any]) -> bool:
    """Whether MaxText would continue from a checkpoint on this machine."""
    directory = checkpoint_owner(keys)
    return directory is not None and any((directory / "checkpoints").glob("[0-9]*"))


def mark_checkpoints(keys: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write beside the checkpoints-to-be which configuration makes them."""
    directory = checkpoint_owner(keys)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        write_json_atomic(directory / MARKER, {"identity": _keys_of(record["identity"])})


def _keys_of(identity: Identity) -> Identity:
    """The part of an identity that MaxText's keys make: those have no dot."""
    return {name: value for name, value in identity.items() if "." not in name}


def checkpoint_owner(keys: Mapping[str, Any]) -> Path | None:
    """The local folder that MaxText keeps this run's checkpoints in; None where there are none or they are remote."""
    base = str(keys["base_output_directory"])
    if not keys.get("enable_checkpointing", True) or "://" in base:
        return None
    return Path(base) / str(keys["run_name"])


def _compare_with(file: Path, identity: Identity, *, what: str, fix: str) -> list[Problem]:
    try:
        earlier = read_json(file)["identity"]
        differences = list_differences(earlier, identity)
    except (RecordError, KeyError, AttributeError):
        what = f"{what} has an unreadable record, {file}."
        return [Problem(what=what, fix=fix, scope="combination")]
    differences = {name: pair for name, pair in differences.items() if name not in LENGTH_KEYS}
    if _schedule_length(earlier) == _schedule_length(identity):
        differences.pop(_SCHEDULE, None)
    if not differences:
        return []
    shown = "; ".join(f"{name}: {old!r} there, {new!r} now" for name, (old, new) in differences.items())
    return [Problem(what=f"{what} belongs to another configuration ({shown}).", fix=fix)]


def _schedule_length(identity: Identity) -> object:
    """Steps of the learning rate's schedule. Without them MaxText takes `steps`, so naming that is no change."""
    steps = identity.get(_SCHEDULE)
    return steps if isinstance(steps, int) and steps >= 0 else identity.get("steps")
