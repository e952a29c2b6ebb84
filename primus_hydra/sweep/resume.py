"""`sweep.json`: what was typed to start a sweep, so that `sweep.resume=DIR` can do it again."""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from primus_hydra import __version__
from primus_hydra.atomic_files import write_json_atomic
from primus_hydra.errors import ConfigError, Problem
from primus_hydra.grammar import typed_name
from primus_hydra.maxtext.keys import installed_version
from primus_hydra.own_command import own_command
from primus_hydra.redaction import redact_all, secret_values
from primus_hydra.runs import RecordError, RunFolderError, read_json

SWEEP_FILE = "sweep.json"
"""File in the sweep's folder that makes it one."""
_DIR = "sweep.dir"
_MAX_NEAR = 5
"""Folders that are listed for somebody who named another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Command:
    arguments: tuple[str, ...]
    cwd: Path


_typed: list[_Command] = []


def record_command(arguments: Sequence[str], cwd: Path) -> None:
    """Keep what was typed until the sweep's folder is known. Called once by cli, before Hydra.

    Args:
        arguments: as typed, without the program's name; credentials are taken out already.
        cwd: absolute path of the folder that it was typed in.
    """
    _typed[:] = [_Command(arguments=tuple(arguments), cwd=cwd)]


def write_sweep_record(folder: Path) -> None:
    """Write sweep.json; the time of the first start stays.

    Raises:
        OSError: the folder cannot be written.
    """
    command = _typed[-1] if _typed else _Command(arguments=(), cwd=Path.cwd())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        started_at = read_json(folder / SWEEP_FILE).get("started_at", now)
    except RecordError:
        started_at = now
    record = {
        "schema": 1,
        "arguments": _with_dir(command.arguments, folder),
        "cwd": str(command.cwd),
        "versions": {
            "primus_hydra": __version__,
            "maxtext": installed_version(),
            "hydra": importlib.metadata.version("hydra-core"),
            "python": platform.python_version(),
        },
        "started_at": started_at,
        "last_started_at": now,
    }
    write_json_atomic(folder / SWEEP_FILE, redact_all(record, secret_values(os.environ)))


def refuse_if_begun(folder: Path) -> None:
    """Refuse a sweep that somebody else began while we took its folder for a new one.

    Raises:
        RunFolderError: what its runs say was not looked at, so they would be trained again.
    """
    if (folder / SWEEP_FILE).exists():
        raise RunFolderError(
            f"Another start of this sweep came first and has begun it, {folder}. "
            "Type the same command again: then it runs what is missing."
        )


def recorded_arguments(folder: Path) -> tuple[list[str], Path]:
    """What was typed to start the sweep in this folder, and where.

    `sweep.dir=<folder>` is among the arguments, whether it was typed or not, and names the folder where it lies now.

    Raises:
        ConfigError: it is no sweep folder, or its record is damaged.
    """
    folder = folder.expanduser().absolute()
    if not (folder / SWEEP_FILE).exists():
        what = f"sweep.resume={folder} is not a sweep folder: it holds no {SWEEP_FILE}."
        raise ConfigError([Problem(what=what, fix=_describe_choice(folder))])
    try:
        record = read_json(folder / SWEEP_FILE)
    except RecordError as error:
        raise ConfigError(
            [Problem(what=f"sweep.resume={folder} cannot be taken up: {error}", fix=_describe_choice(folder))]
        ) from error
    arguments, cwd = record.get("arguments"), record.get("cwd")
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments) or not arguments:
        what = f"{folder / SWEEP_FILE} is damaged: arguments is {arguments!r}; it must be a list of texts."
        raise ConfigError([Problem(what=what, fix="Type the sweep's command again, with sweep.dir=DIR.")])
    if not isinstance(cwd, str) or not Path(cwd).is_dir():
        what = f"The folder that the sweep was started in, {cwd}, does not exist any more."
        raise ConfigError([Problem(what=what, fix=f"Make it again, or correct cwd in {folder / SWEEP_FILE}.")])
    return _with_dir(arguments, folder), Path(cwd)


def resume_command(folder: Path) -> str:
    """What to type, for a shell, to take up the sweep in a folder."""
    return own_command("primus_hydra", f"sweep.resume={folder}")


def _with_dir(arguments: Sequence[str], folder: Path) -> list[str]:
    others = [word for word in arguments if typed_name(word) != _DIR]
    return [*others, f"{_DIR}={folder}"]


def _describe_choice(folder: Path) -> str:
    for near in (folder, folder.parent, folder.parent.parent, Path("outputs"), Path()):
        files = sorted(near.glob(f"*/{SWEEP_FILE}"), key=lambda file: file.stat().st_mtime_ns)
        if files:
            newest = [str(file.parent) for file in reversed(files[-_MAX_NEAR:])]
            more = f" and {len(files) - _MAX_NEAR} more" if len(files) > _MAX_NEAR else ""
            return f"Sweep folders near it, the newest first: {', '.join(newest)}{more}."
    return "Name the folder that sweep.dir=DIR had."
