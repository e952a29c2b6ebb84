"""Text that OmegaConf must not take for an interpolation."""

import re
from collections.abc import Mapping
from typing import Any

_START = re.compile(r"(\\*)\$\{")


def escape_interpolations(value: Any) -> Any:
    """Plain data in which `${` is text and not an interpolation, once OmegaConf has resolved it.

    A backslash before `${` escapes it; those that stand there already are doubled.
    """
    if isinstance(value, str):
        return _START.sub(lambda found: found[1] * 2 + "\\${", value)
    if isinstance(value, Mapping):
        return {name: escape_interpolations(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [escape_interpolations(inner) for inner in value]
    return value
