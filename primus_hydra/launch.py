"""From a planned run folder to what the worker starts, and how it listens."""

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from primus_hydra.log_lines import LEVELS
from primus_hydra.runs import Record, RecordError, RunFolder, read_json

_PACKAGE_ROOT = Path(__file__).parent.parent
_STEP_KEYS = ("steps", "learning_rate_schedule_steps")
_NOT_EXECUTABLE = {
    "planning": "The plan in {path} was not written to its end, so nothing was started. Plan the run again.",
    "invalid": "The configuration of {path} was refused (run.json says why), so nothing was started.",
}
DEFAULT_LOG_PERIOD = 100
"""MaxText's own."""


def read_plan(folder: RunFolder) -> tuple[Record, dict[str, Any]]:
    """run.json and command.json, with all fields that are needed from now to the end of the run.

    Raises:
        RecordError: one of the files cannot be read, or fields are missing or of a wrong type: all are named.
    """
    record = folder.read_record()
    if record.get("state") in _NOT_EXECUTABLE:
        raise RecordError(_NOT_EXECUTABLE[record["state"]].format(path=folder.path))
    command = read_json(folder.command_json)
    wrong = [f"run.json: {text}" for text in _wrong_fields(record, _RECORD_FIELDS)]
    wrong += [f"command.json: {text}" for text in _wrong_fields(command, _COMMAND_FIELDS)]
    if isinstance(record.get("private"), Mapping):
        wrong += [f"run.json: private.{text}" for text in _unknown_levels(record["private"])]
    if wrong:
        raise RecordError(
            f"{folder.path} is not a complete plan, so nothing was started:\n  "
            + "\n  ".join(wrong)
            + "\nPlan the run again, or correct these fields."
        )
    if Path(command["cwd"]) != folder.path:
        raise RecordError(
            f"The run folder was made at {command['cwd']} and lies at {folder.path} now. Its files name the first "
            "place, so nothing was started. Move it back, or export it again where it is to run."
        )
    return record, command


def _wrong_fields(data: Mapping[str, Any], fields: Mapping[str, "_Expected"]) -> Iterator[str]:
    for name, (meaning, is_right) in fields.items():
        value: Any = data
        for part in name.split("."):
            # A parent that is no object is told by its own entry.
            value = value.get(part, _MISSING) if isinstance(value, Mapping) else _UNKNOWN
        if value is _MISSING:
            yield f"{name} is missing; it must be {meaning}."
        elif value is not _UNKNOWN and not is_right(value):
            yield f"{name} is {_brief(value)}; it must be {meaning}."


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_duration(value: object) -> bool:
    """Whether it is a finite number of seconds above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= sys.float_info.max  # type: ignore[operator]


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_program(value: object) -> bool:
    return _is_texts(value) and bool(value)


def _is_composed(value: object) -> bool:
    """Whether each key has its value, and those that are read here can be."""
    if not isinstance(value, Mapping) or not all(
        isinstance(item, Mapping) and "value" in item for item in value.values()
    ):
        return False
    period = value.get("log_period", {"value": DEFAULT_LOG_PERIOD})["value"]
    return isinstance(period, int) and not isinstance(period, bool)


def _is_environment(value: object) -> bool:
    """Whether an operating system takes it: text, no name with `=`, nothing with NUL."""
    return isinstance(value, Mapping) and all(
        isinstance(text, str) and name and not {"=", "\0"} & set(name) and "\0" not in text
        for name, text in value.items()
    )


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


_Expected = tuple[str, Callable[[Any], bool]]
_MISSING, _UNKNOWN = object(), object()
_LIMIT: _Expected = ("null or a number of seconds above 0", lambda value: value is None or _is_duration(value))
_RECORD_FIELDS: Mapping[str, _Expected] = {
    "name": ("a text", lambda value: isinstance(value, str)),
    "composed": ('an object of keys, each with its "value", log_period a whole number', _is_composed),
    "private": ("an object", _is_mapping),
    "settings": ("an object", _is_mapping),
    "settings.run": ("an object", _is_mapping),
    "settings.run.timeout_s": _LIMIT,
    "settings.run.hang_after_s": _LIMIT,
    "settings.run.grace_s": ("a number of seconds above 0", _is_duration),
    "settings.run.warmup_steps": ("a whole number of at least 0", _is_count),
    "warnings": ("a list of texts", _is_texts),
    "versions": ("an object", _is_mapping),
    "attempt": ("a whole number of at least 0", _is_count),
}
_COMMAND_FIELDS: Mapping[str, _Expected] = {
    "trainer": (
        "null or a list of texts, the program first",
        lambda value: value is None or _is_program(value),
    ),
    "maxtext_args": ("a list of texts", _is_texts),
    "env": ("an object of texts", _is_environment),
    "unset_env": ("a list of texts", _is_texts),
}
"""What a plan must hold -> what it means, and the check."""


def expected_steps(composed: Mapping[str, Any]) -> int | None:
    """Steps of the whole run; MaxText takes the schedule's length for `steps: -1`, and the other way round."""
    for key in _STEP_KEYS:
        value = composed.get(key, {}).get("value")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return int(value)
    return None


def resolved_steps(composed: Mapping[str, Any], effective: Mapping[str, Any]) -> int | None:
    """The same, as MaxText resolved it (effective.json); what is not there counts as composed."""
    keys = effective.get("keys")
    found = {key: {"value": keys[key]} for key in _STEP_KEYS if key in keys} if isinstance(keys, Mapping) else {}
    return expected_steps({**composed, **found})


def trainer_argv(folder: RunFolder, command: Mapping[str, Any]) -> list[str]:
    """The program and its arguments: our child, or the user's own trainer with MaxText's arguments."""
    if command["trainer"] is None:
        return [sys.executable, "-m", "primus_hydra.maxtext.child", str(folder.path)]
    return [*command["trainer"], *command["maxtext_args"]]


def child_environment(env: Mapping[str, str], command: Mapping[str, Any]) -> dict[str, str]:
    """`env` without what the plan removes."""
    child = {name: value for name, value in env.items() if name not in command["unset_env"]}
    if command["trainer"] is None and _PACKAGE_ROOT.name not in ("site-packages", "dist-packages"):
        # A plain checkout is importable from where the command was typed, but not from the run folder.
        child["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), child.get("PYTHONPATH", "")]))
    return child


def sink_levels(private: Mapping[str, Any]) -> tuple[int, int]:
    """Levels of train.log and of the console, of a plan that was read with `read_plan`."""
    file, console = (LEVELS[name.upper()] for _, name in _level_names(private))
    return file, console


def _level_names(private: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, level) of train.log and of the console. `sink_level` overrides both, as in Primus."""
    keys = (("file_sink_level", "DEBUG"), ("stderr_sink_level", "INFO"))
    if common := private.get("sink_level"):
        return [("sink_level", str(common))] * len(keys)
    return [(key, str(private.get(key) or default)) for key, default in keys]


def _unknown_levels(private: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} is {name}; it must be one of {', '.join(LEVELS)}."
        for key, name in dict.fromkeys(_level_names(private))
        if name.upper() not in LEVELS
    ]
