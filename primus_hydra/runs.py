"""The run folder: its paths, its record, its lock, and what makes two configurations the same."""

import contextlib
import fcntl
import hashlib
import json
import math
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

Record = dict[str, Any]
"""Content of run.json: names, overrides, composed keys, settings, state, timings, result figures."""

_OUTPUT_KEYS = "run_name base_output_directory metrics_file checkpoint_dir metrics_dir tensorboard_dir"
_REPORTING_KEYS = """
    log_period log_config enable_tensorboard gcs_metrics save_config_to_gcs enable_checkpoint_cloud_logger
    enable_wandb wandb_project_name wandb_run_name managed_mldiagnostics_dir
    enable_goodput_recording monitor_goodput goodput_job_name monitor_step_time_deviation
"""
# The compile cache changes when the first step comes, not what it computes.
# A credential must neither be hashed nor decide anything.
_OTHER_KEYS = "jax_cache_dir hf_access_token"
IDENTITY_FREE_KEYS = frozenset(f"{_OUTPUT_KEYS} {_REPORTING_KEYS} {_OTHER_KEYS}".split())
"""MaxText keys that do not change what is trained (places, reporting); left out of the fingerprint."""

NOT_SET = "(not set)"
"""Stands in `config_differences` for the value of a key that one side does not have."""

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

    def metrics_of_rank(self, rank: int) -> Path:
        """MaxText's metrics file of one process; every process writes its own."""
        return self.metrics_jsonl if rank == 0 else self.path / f"metrics.{rank}.jsonl"

    def read_record(self) -> Record:
        """Read run.json.

        Raises:
            RecordError: it is missing, half-written, or not a JSON object.
        """
        return read_json(self.run_json)

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace run.json in one step."""
        write_json_atomic(self.run_json, record)

    def keep_record(self) -> int:
        """Rename the record of an earlier attempt to `run.json.<attempt>`; returns the number of attempts so far.

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
        if attempt:
            self.run_json.rename(self.path / f"run.json.{attempt}")
        return attempt

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


def write_json_atomic(path: Path, data: Mapping[str, Any]) -> None:
    """Write strict JSON whole or not at all. JSON has no NaN or infinity: such numbers become null."""
    write_text_atomic(path, json.dumps(_without_non_finite(data), indent=2, allow_nan=False) + "\n")


def write_text_atomic(path: Path, text: str) -> None:
    """Write a file whole or not at all: temporary name in the same folder, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _without_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(item) for item in value]
    return value


def fingerprint(composed: Mapping[str, Any]) -> str:
    """sha256, in hexadecimal, of the MaxText keys that decide what is trained.

    Args:
        composed: MaxText key -> value, plain JSON types.

    Raises:
        TypeError, ValueError: a value that JSON cannot spell the same way twice (a set, an object, NaN).
    """
    identity = {key: value for key, value in composed.items() if key not in IDENTITY_FREE_KEYS}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def config_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys that make the fingerprints of two configurations differ -> (value in a, value in b)."""
    names = sorted((a.keys() | b.keys()) - IDENTITY_FREE_KEYS)
    pairs = {name: (a.get(name, NOT_SET), b.get(name, NOT_SET)) for name in names}
    return {name: pair for name, pair in pairs.items() if json.dumps(pair[0]) != json.dumps(pair[1])}


def this_worker() -> dict[str, Any]:
    """Who executes: enough to recognise later that this very process is gone."""
    return {
        "host": socket.gethostname(),
        "boot_id": _boot_id(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
    }


def is_abandoned(record: Mapping[str, Any]) -> bool:
    """Whether the record says `running` although its worker is dead.

    A worker on another host cannot be seen from here: the answer is False then, and the folder's lock decides.
    """
    if record.get("state") != "running":
        return False
    worker = record.get("worker")
    if not isinstance(worker, Mapping) or not isinstance(worker.get("pid"), int):
        return True
    if worker.get("host") != socket.gethostname():
        return False
    if worker.get("boot_id") != _boot_id():
        return True
    try:
        process = psutil.Process(worker["pid"])
        # A zombie has stopped working; a start time that differs means that the pid was given to somebody else.
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - worker["started"]) > 1.0
    except (psutil.NoSuchProcess, KeyError, TypeError, ValueError):  # gone, or a damaged record that names no process
        return True


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return str(int(psutil.boot_time()))
