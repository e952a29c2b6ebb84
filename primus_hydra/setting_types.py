"""Types and limits of our own settings, so that a wrong one is told like any other problem."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from primus_hydra.errors import Problem
from primus_hydra.grammar import write_value
from primus_hydra.objective import OBJECTIVES
from primus_hydra.schema import Settings

_KINDS = {
    float: "a number",
    int: "a whole number",
    str: "text",
    list: "a list such as [a,b]",
    bool: "true or false",
    NoneType: "null",
}
_MINIMUM = {
    "run.hang_after_s": 0.001,
    "run.timeout_s": 0.001,
    "run.grace_s": 0.001,
    "run.warmup_steps": 0,
    "platform.devices_per_node": 1,
    "platform.nodes": 1,
    "platform.memory_per_device_bytes": 1,
    "sweep.max_parallel": 1,
    "sweep.repeats": 1,
    "sweep.retries": 0,
    "sweep.keep": 0.001,
    "sweep.stop_below": 0.001,
}
"""Setting -> the least value that makes sense."""
_SPECIAL: dict[str, tuple[Callable[[Any], bool], str]] = {
    "run.trainer": (lambda value: value != [], "a list with at least the program, or null"),
    "sweep.keep": (lambda value: value <= 1, "a fraction above 0 and at most 1"),
    "sweep.stop_below": (lambda value: value is None or value < 1, "a fraction above 0 and below 1, or null"),
    "sweep.rungs": (lambda value: _are_steps(value), "a list of steps, each at least 1 and more than the one before"),
    "sweep.objective": (lambda value: _are_objectives(value), f"one or several of {', '.join(OBJECTIVES)}, each once"),
}
"""Setting -> whether a value of the right type can be meant, and which ones can."""
_CHOICES = {"platform.jax_platform": ("rocm", "cpu")}
"""Text settings with a closed list of values."""


NAMESPACES = tuple(field.name for field in dataclasses.fields(Settings) if field.name != "action")
"""First parts of our settings' names."""


@cache
def list_settings() -> Mapping[str, Any]:
    """Dotted name -> type of every setting of ours."""
    settings: dict[str, Any] = {}
    for field, namespace in get_type_hints(Settings).items():
        hints = get_type_hints(namespace) if dataclasses.is_dataclass(namespace) else {}
        settings |= {f"{field}.{name}": hint for name, hint in hints.items()} or {field: namespace}
    return settings


def check_setting(name: str, value: Any, origin: str) -> Problem | None:
    """Whether a setting can hold the value.

    Args:
        name: dotted name, such as `run.dir`.
        value: as Hydra parsed it from the command line, or as it was composed.
        origin: where it was set.
    """
    expected = list_settings()[name]
    choices = _CHOICES.get(name) or _list_members(expected)
    if choices:
        value = value.name if isinstance(value, Enum) else "null" if value is None else value
        allowed = "" if value in choices else f"Allowed: {', '.join(choices)}."
    else:
        allowed = "" if any(_fits(value, kind) for kind in _members(expected)) else _describe(expected)
    if not allowed and name in _MINIMUM and value is not None and not _reaches(value, _MINIMUM[name]):
        allowed = (
            f"Allowed: {_describe(expected).removeprefix('Allowed: ').removesuffix('.')}, at least {_MINIMUM[name]:g}."
        )
    if not allowed and name in _SPECIAL and not _SPECIAL[name][0](value):
        allowed = f"Allowed: {_SPECIAL[name][1]}."
    if not allowed:
        return None
    takes_list = list in [get_origin(kind) for kind in _members(expected)] and isinstance(value, str)
    fix = f"Write {name}=[{value}]." if takes_list else ""
    what = f"{name}={_spell(value)} is not a value for this setting."
    return Problem(what=what, allowed=allowed, fix=fix, origin=origin)


def _spell(value: Any) -> str:
    """As a person types it: a list of one text may be written without its brackets."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return write_value(value) if isinstance(value, list) else str(value)


def check_settings(settings: Settings, origins: dict[str, str]) -> Iterator[Problem]:
    """What is wrong with composed settings; values from preset files pass only here."""
    for name in list_settings():
        namespace, _, field = name.rpartition(".")
        value = getattr(getattr(settings, namespace), field) if namespace else getattr(settings, field)
        problem = check_setting(name, value, origins.get(name, "a preset file"))
        if problem is not None:
            yield problem


def _list_members(expected: Any) -> list[str]:
    """The values of an enumeration, perhaps an optional one; empty for any other type."""
    kinds = _members(expected)
    names = [member.name for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for member in kind]
    return [*names, "null"] if names and NoneType in kinds else names


def _members(expected: Any) -> tuple[Any, ...]:
    return get_args(expected) if isinstance(expected, UnionType) else (expected,)


def _fits(value: Any, kind: Any) -> bool:
    base = get_origin(kind) or kind
    if isinstance(value, bool):
        return base is bool
    return isinstance(value, int | float if base is float else base)


def _reaches(value: Any, minimum: float) -> bool:
    return math.isfinite(value) and value >= minimum


def _are_steps(values: list[Any]) -> bool:
    whole = all(isinstance(value, int) and not isinstance(value, bool) and value >= 1 for value in values)
    return whole and values == sorted(set(values))


def _are_objectives(values: list[Any]) -> bool:
    return bool(values) and len({*values}) == len(values) and {*values} <= OBJECTIVES.keys()


def _describe(expected: Any) -> str:
    return f"Allowed: {' or '.join(_KINDS.get(get_origin(kind) or kind, 'a mapping') for kind in _members(expected))}."
