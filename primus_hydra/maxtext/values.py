"""Values of MaxText's keys: from the text or YAML that a person wrote to the type that MaxText declares."""

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from primus_hydra.errors import Problem
from primus_hydra.maxtext.axis_rules import RULES, is_rule_list
from primus_hydra.maxtext.keys import Key

_UNFILLED = ("???", "<changeme>")
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "greater than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
}
_MAX_LISTED = 32
_ITEM = re.compile(r"list\[(str|int)\]")
_AT_LEAST_ONE = frozenset(
    {"max_target_length", "vocab_size", "base_emb_dim", "base_num_decoder_layers", "base_num_query_heads"}
)
"""Sizes that MaxText declares as plain integers and that make no sense below 1."""
_MAX_INT = 2**63 - 1
_KIND_NAMES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list such as [a,b]",
    "dict": "a mapping such as {a:1}",
}
MORE_PATH_KEYS = frozenset({"hf_train_files", "hf_eval_files", "chat_template_path"})
"""Keys that hold local paths though MaxText declares them as plain text."""
NOT_PATH_KEYS = frozenset(
    {"hf_data_dir", "olmo_path_remap_from", "olmo_path_remap_to", "dump_hlo_gcs_dir", "dump_jaxpr_gcs_dir"}
)
"""Keys declared as paths whose value is not a path of this machine."""


def coerce(value: Any, key: Key, origin: str) -> tuple[Any, Problem | None]:
    """Convert one value to the type MaxText declares for the key.

    Returns:
        The converted value and None, or the value as it was and the problem with it.
    """
    if isinstance(value, str) and value.strip() in _UNFILLED:
        return value, _problem(
            value, key, origin, what=f"{key.name} has to be filled in: its value is still {value!r}."
        )
    if value is None or _means_null(value, key):
        return (
            (None, None)
            if key.nullable or (not key.kinds and key.name != RULES)
            else (value, _problem(value, key, origin))
        )
    converted = _convert(value, key)
    if converted is None:
        return value, _problem(value, key, origin)
    if (
        key.fields
        and isinstance(converted, dict)
        and (unknown := [name for name in converted if name not in key.fields])
    ):
        return value, _unknown_field(unknown[0], key, origin)
    if key.choices and converted not in key.choices:
        return value, _problem(value, key, origin)
    if isinstance(converted, int) and (converted > _MAX_INT or (key.name in _AT_LEAST_ONE and converted < 1)):
        return value, _problem(value, key, origin)
    if not all(_BOUNDS[name][0](converted, limit) for name, limit in key.bounds if isinstance(converted, int | float)):
        return value, _problem(value, key, origin)
    return converted, None


def _means_null(value: Any, key: Key) -> bool:
    """MaxText reads the text "none" as null; here too, except where it is free text or a choice of its own."""
    free_text = "str" in key.kinds and not key.choices
    return (
        isinstance(value, str)
        and value.lower() == "none"
        and key.nullable
        and not free_text
        and value not in key.choices
    )


def _convert(value: Any, key: Key) -> Any:
    """The value in the first of the key's kinds that can hold it; None where none can."""
    if key.name == RULES:
        return value if is_rule_list(value) else None
    if not key.kinds:
        return value
    if isinstance(value, list | tuple) and (item := _ITEM.search(key.annotation)):
        items = [_CONVERTERS[item[1]](element) for element in value]
        return None if None in items else items
    for kind, convert in _CONVERTERS.items():
        if kind in key.kinds:
            converted = convert(value)
            if converted is not None:
                return converted
    return None


def _to_bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return bool(value) if value in (0, 1) and isinstance(value, int) else None


def _to_int(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return int(value.replace("_", ""))
        except ValueError:
            return _to_int(_to_float(value))
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _to_float(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _to_str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _to_list(value: Any) -> list[Any] | None:
    return list(value) if isinstance(value, list | tuple) else None


def _to_dict(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, Mapping) else None


# A key of several kinds takes the narrowest that fits, so bool comes before int, int before float, text last.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "list": _to_list,
    "dict": _to_dict,
    "bool": _to_bool,
    "int": _to_int,
    "float": _to_float,
    "str": _to_str,
}


def _unknown_field(name: str, key: Key, origin: str) -> Problem:
    close = difflib.get_close_matches(name, key.fields, n=3)
    return Problem(
        what=f"{key.name}.{name} does not exist; MaxText would ignore it.",
        allowed=f"Allowed: {', '.join(key.fields)}.",
        fix=f"Did you mean {' or '.join(f'{key.name}.{found}' for found in close)}?" if close else "",
        origin=origin,
    )


def describe_allowed(key: Key) -> str:
    """One sentence that says what the key accepts."""
    if key.choices:
        names = ", ".join(repr(choice) for choice in key.choices[:_MAX_LISTED])
        more = len(key.choices) - _MAX_LISTED
        return f"Allowed: {names}{f' and {more} more' if more > 0 else ''}{' or null' if key.nullable else ''}."
    kinds = [_KIND_NAMES[kind] for kind in _CONVERTERS if kind in key.kinds]
    if key.name == RULES:
        return "Allowed: a list of [logical axis, mesh axis or list of mesh axes], such as [[mlp,[fsdp]]]."
    limits = [f"{_BOUNDS[name][1]} {limit:g}" for name, limit in key.bounds]
    limits += ["at least 1"] if key.name in _AT_LEAST_ONE else []
    allowed = " ".join([" or ".join(kinds), " and ".join(limits)]).strip()
    return f"Allowed: {allowed}{' or null' if key.nullable else ''}."


def _problem(value: Any, key: Key, origin: str, what: str = "") -> Problem:
    fix = ""
    if what:
        fix = f"Write {key.name}=VALUE on the command line, or set it in the file."
    elif key.choices:
        close = difflib.get_close_matches(str(value), [str(choice) for choice in key.choices], n=3)
        fix = f"Did you mean {' or '.join(close)}?" if close else ""
    elif key.kinds == {"str"} and isinstance(value, int | float):
        fix = f'YAML reads it as a number: put it in quotes to keep it as text, for example {key.name}: "{value}".'
    return Problem(
        what=what or f"{key.name}={value!r} is not a value that MaxText accepts for this key.",
        allowed=describe_allowed(key),
        fix=fix,
        origin=origin,
    )


def is_path_key(key: Key) -> bool:
    """Whether the key's value names a file or folder of this machine."""
    return ("PathStr" in key.annotation or key.name in MORE_PATH_KEYS) and key.name not in NOT_PATH_KEYS


def absolute_path(value: str, base: Path) -> str:
    """Resolve a local path against the folder where the command was typed.

    `~` is expanded; empty values and URLs (`gs://`, `hf://`) are returned unchanged; each part of a
    `;`-separated list of patterns is resolved.
    """
    return ";".join(
        part if not part or "://" in part else str(base / Path(part).expanduser()) for part in value.split(";")
    )
