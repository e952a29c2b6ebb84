"""Hydra's grammar of overrides: reading them, and writing values so that they are read back as they are."""

import re
from functools import cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

SWEEP_FUNCTION = re.compile(r"\s*(choice|range|interval|glob|sort|shuffle|tag)\(")
"""Values that mean several values."""
NOT_TEXT = re.compile(rf"\s*['\"]|.*\$\{{|{SWEEP_FUNCTION.pattern}|\s*extend_list\(", re.DOTALL)
"""Values that Hydra is to interpret: in quotes, with an interpolation, or a sweep function."""


@cache
def parse_override(text: str) -> Override:
    """One override as Hydra reads it. Points of a sweep share most of theirs, and reading one takes 0.3 ms.

    Raises:
        HydraException: it is no override.
    """
    (override,) = OverridesParser.create().parse_overrides([text])
    return override


def try_parse(text: str) -> Override | None:
    """The same; None for what is no override."""
    try:
        return parse_override(text)
    except HydraException:
        return None


def typed_name(text: str) -> str:
    """The key or group that an override names, without `+`, `~`, package and value."""
    return text.lstrip("+~").split("=")[0].split("@")[0]


def split_top_level(value: str) -> list[str]:
    """Split at the commas that Hydra's sweep grammar sees: outside quotes and brackets."""
    parts, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(value):
        if quote:
            quote = "" if char == quote and value[index - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(value[start:index])
            start = index + 1
    return [*parts, value[start:]]


def quote_typed(element: str, *, keep_numbers: bool) -> str:
    """A value as it was typed, in quotes where Hydra would not keep it as the text it is.

    Args:
        element: one value, without a comma of the sweep grammar.
        keep_numbers: numbers and truth values stay what they are.
    """
    if element == "" or element == "null" or NOT_TEXT.match(element):
        return element
    parsed = try_parse(f"k={element}")
    value = parsed.value() if parsed is not None else None
    if value == element or (keep_numbers and isinstance(value, int | float)):
        return element
    return _quote(element)


def write_value(value: Any) -> str:
    """A value of a YAML file as an override spells it, so that Hydra reads back the same value and type."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_value(name)}:{write_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{','.join(write_value(inner) for inner in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str):
        return str(value)
    parsed = try_parse(f"k=[{value}]")
    reads_back = parsed is not None and parsed.value() == [value] and not value.startswith(("'", '"'))
    return value if reads_back else _quote(value)


def _quote(text: str) -> str:
    # In Hydra's quotes a backslash stands for itself, except before a quote and at the end.
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"
