"""The run folder: its paths, its record, its lock."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from primus_hydra.atomic_files import list_half_written, write_json_atomic

Record = dict[str, Any]
"""Content of run.json: names, overrides, composed keys, settings, state, timings, result figures."""

NOT_BEGUN = frozenset({"planning", "planned", "invalid"})
"""States of a record that tells of no attempt. `planning`: the plan is being written, and cannot be executed yet."""

_ROTATED = ("train.log", "metrics.jsonl", "effective.json", "child.json")


class RunFolderError(Exception):
    """The folder cannot be executed: a file is missing, half-written, not writable, or another worker has it."""


class RecordError(RunFolderError):
    """A JSON file of the run folder is missing, half-written, or lacks a field."""


class RunLockedError(RunFolderError):
    """Another worker executes this folder right now."""


@dataclass(frozen=True)
class RunFolder:
    """The one interface between planning, executing and reporting. Nobody else joins these paths."""

    path: Path
    """Absolute path of the folder."""

    @cached_property
    def maxtext_yml(self) -> Path:
        """What MaxText reads."""
        return self.path / "maxtext.yml"

    @cached_property
    def command_json(self) -> Path:
        """Arguments and the environment that we set."""
        return self.path / "command.json"

    @cached_property
    def command_sh(self) -> Path:
        """The same command for a shell: `bash command.sh` repeats the run with plain MaxText."""
        return self.path / "command.sh"

    @cached_property
    def run_json(self) -> Path:
        """The record."""
        return self.path / "run.json"

    @cached_property
    def effective_json(self) -> Path:
        """What MaxText resolved, written by the child before training."""
        return self.path / "effective.json"

    @cached_property
    def child_json(self) -> Path:
        """What the child saw: platform, devices, versions, compile time."""
        return self.path / "child.json"

    @cached_property
    def train_log(self) -> Path:
        """Output and errors of the child, in order."""
        return self.path / "train.log"

    @cached_property
    def metrics_jsonl(self) -> Path:
        """MaxText's metrics file of rank 0."""
        return self.path / "metrics.jsonl"

    @cached_property
    def hydra_dir(self) -> Path:
        """Hydra's record of the composition."""
        return self.path / ".hydra"

    @cached_property
    def replay_yaml(self) -> Path:
        """A self-contained Hydra config that composes to this run, whatever becomes of the presets."""
        return self.path / "replay.yaml"

    @cached_property
    def lock_file(self) -> Path:
        """Held by whoever executes the folder."""
        return self.path / ".lock"

    @cached_property
    def reserve_file(self) -> Path:
        """Room kept on the disk while the run lasts, so that its end can be recorded on a full disk."""
        return self.path / ".reserve"

    def read_record(self) -> Record:
        """Read run.json.

        Raises:
            RecordError: it is missing, half-written, or not a JSON object.
        """
        return read_json(self.run_json)

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace run.json in one step."""
        write_json_atomic(self.run_json, record)

    def count_attempts(self) -> int:
        """Attempts that began here so far, as run.json says; 0 where there is none.

        Raises:
            RecordError: run.json cannot be read, or does not count its attempts.
        """
        if not self.run_json.exists():
            return 0
        attempt = self.read_record().get("attempt", 0)
        if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 0:
            raise RecordError(
                f"{self.run_json} is damaged: attempt is {attempt!r}; it must be a whole number of at least 0. "
                "Correct it, move the file away, or start this run in another folder."
            )
        return attempt

    def keep_record(self) -> None:
        """Copy the record of an attempt that began to `run.json.<attempt>`, before another one replaces it.

        Raises:
            OSError: the copy cannot be written; run.json is as it was.
            RecordError: as `count_attempts`.
        """
        attempt = self.count_attempts()
        if attempt and (record := self.read_record()).get("state") not in NOT_BEGUN:
            write_json_atomic(self.record_of_attempt(attempt), record)

    def record_of_attempt(self, attempt: int) -> Path:
        """The record of an attempt, from 1, that a later one replaced."""
        return self.path / f"run.json.{attempt}"

    def remove_half_written(self) -> None:
        """Remove what writers that were killed left here. Only for the holder of the lock: others may be writing."""
        for path in list_half_written(self.path):
            path.unlink(missing_ok=True)

    def rotate_attempt(self, attempt: int) -> None:
        """Rename what an earlier attempt left to `<name>.<attempt>`, so that stale numbers are never read.

        A suffix that is taken already is skipped: nothing is overwritten.
        """
        names = [*_ROTATED, *(path.name for path in sorted(self.path.glob("metrics.*.jsonl")))]
        stale = [name for name in names if (self.path / name).exists()]
        while any((self.path / f"{name}.{attempt}").exists() for name in stale):
            attempt += 1
        for name in stale:
            (self.path / name).rename(self.path / f"{name}.{attempt}")

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder's lock; yields the descriptor that holds it. The kernel drops it when the holder dies.

        Raises:
            RunLockedError: another worker holds it.
            RunFolderError: the folder does not exist or cannot be written.
        """
        try:
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RunFolderError(f"There is no run folder {self.path}.") from error
        except OSError as error:
            raise RunFolderError(f"The run folder {self.path} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise RunLockedError(
                f"The run folder {self.path} is being executed by another worker. "
                "Wait for it, stop it, or start this run in another folder."
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        RecordError: the file is missing, unreadable, half-written, or not an object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecordError(f"{path} does not exist: this is not a planned run folder.") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise RecordError(f"{path} is not valid JSON (half-written or damaged): {error}.") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path} holds a {type(data).__name__} where a JSON object is expected.")
    return data
