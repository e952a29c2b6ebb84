"""A run folder of ours -> what the report knows about it, however damaged its files are."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from primus_hydra.liveness import is_abandoned
from primus_hydra.own_command import own_command
from primus_hydra.report.figures import clean_result, mapping, number, text, text_mapping, texts
from primus_hydra.report.model import Run
from primus_hydra.runs import NOT_BEGUN, Record, RecordError, RunFolder, read_json

_PLANNING_FILES = ("run.json", "command.json", "maxtext.yml")
_REPEAT = re.compile(r"-repeat(?P<number>[1-9]\d*)$")
_PLUMBING = ("run.dir=", "sweep.", "action=", "explain.", "hydra/", "hydra.")
_UNREADABLE = "unreadable"


def is_run_folder(folder: Path) -> bool:
    """Whether primus_hydra planned a run there, be it that its record is lost.

    Raises:
        OSError: the folder cannot be looked into.
    """
    return any((folder / name).is_file() for name in _PLANNING_FILES)


def read_run(path: Path, sweep: str) -> Run:
    """What the run folder says; never raises for damage.

    Args:
        path: absolute path of the folder.
        sweep: see `Run.sweep`.
    """
    folder = RunFolder(path)
    record = _read_record(folder)
    state = "abandoned" if is_abandoned(record) else text(record["state"])
    command = _read_command(folder)
    settings = mapping(record.get("settings"))
    sweep_settings = mapping(settings.get("sweep"))
    name = folder_name(path)
    repeat = record.get("repeat")
    found = _REPEAT.search(name)
    # A folder may be called so by its owner: the record has to agree, unless there is none any more.
    is_repeat = found is not None and (repeat == int(found["number"]) or state == _UNREADABLE)
    return Run(
        name=name,
        folder=path,
        sweep=sweep,
        point=_REPEAT.sub("", name) if is_repeat else name,
        repeat=int(found["number"]) if found and is_repeat else 1,
        differs="",
        overrides=tuple(item for item in texts(record.get("overrides")) if not item.startswith(_PLUMBING)),
        state=state,
        failure=text(record.get("failure")) or None,
        reason=text(record.get("reason")),
        composed=_composed(record),
        environment=text_mapping(command.get("env")),
        trainer=texts(command.get("trainer")),
        versions=text_mapping(record.get("versions")),
        result=clean_result(record.get("result")),
        command=_repeat_command(folder),
        step_files=() if _holds_none_of_its_steps(record) else (folder.metrics_jsonl, folder.train_log),
        objectives=texts(sweep_settings.get("objective")),
        peak_bf16_tflops=number(mapping(settings.get("platform")).get("peak_bf16_tflops")),
        direction=text(sweep_settings.get("direction")) or None,
    )


def folder_name(path: Path) -> str:
    """Name of a folder as text; bytes that are no text are escaped."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def _read_record(folder: RunFolder) -> Record:
    try:
        record = folder.read_record()
    except RecordError as error:
        return {"state": _UNREADABLE, "reason": str(error)}
    if not isinstance(record.get("state"), str):
        return {"state": _UNREADABLE, "reason": f"{folder.run_json} is damaged: it has no state."}
    return record


def _holds_none_of_its_steps(record: Record) -> bool:
    """What lies in a folder that is planned again belongs to the attempt before; a first plan has nothing before it."""
    return record["state"] in NOT_BEGUN and (record["state"], record.get("attempt")) != ("planned", 0)


def _read_command(folder: RunFolder) -> Mapping[str, Any]:
    try:
        return read_json(folder.command_json)
    except RecordError:
        return {}


def _composed(record: Record) -> dict[str, Any]:
    entries = mapping(record.get("composed")).items()
    return {text(key): entry["value"] for key, entry in entries if isinstance(entry, Mapping) and "value" in entry}


def _repeat_command(folder: RunFolder) -> str:
    if folder.replay_yaml.is_file():
        return own_command("primus_hydra", "--config-dir", str(folder.path), "--config-name", "replay")
    return f"bash {shlex.quote(str(folder.command_sh))}" if folder.command_sh.is_file() else ""
