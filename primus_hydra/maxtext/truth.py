"""Compare the configuration that was composed with the one that MaxText resolved. No jax, no maxtext import."""

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from primus_hydra.maxtext.axis_rules import RULES, expected_rules

DERIVED = "derived by MaxText"
"""Origin of a resolved value that neither file holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A key that MaxText would not run as composed."""

    key: str
    composed: Any
    composed_origin: str
    resolved: Any
    resolved_origin: str

    def __str__(self) -> str:
        return (
            f"{self.key}: composed {self.composed!r} ({self.composed_origin}), "
            f"but MaxText resolved {self.resolved!r} ({self.resolved_origin})"
        )


def compare(
    composed: Mapping[str, tuple[Any, str]],
    resolved: Mapping[str, Any],
    model: Mapping[str, Any],
    base: Mapping[str, Any],
) -> list[Difference]:
    """Every composed key whose resolved value differs.

    Args:
        composed: key -> (value, origin).
        resolved: all of MaxText's keys after loading, as plain data (see `plain`).
        model: keys of MaxText's own model file.
        base: keys of base.yml.
    """
    values = {key: value for key, (value, _) in composed.items()}
    differences = []
    for key, (value, origin) in composed.items():
        expected = expected_rules(values, model, base) if key == RULES else value
        actual = resolved.get(key)
        source = _resolved_origin(key, actual, model, base)
        if not same(expected, actual) and not (_leaves_open(value) and source == DERIVED):
            difference = Difference(
                key=key, composed=expected, composed_origin=origin, resolved=actual, resolved_origin=source
            )
            differences.append(difference)
    return differences


def same(composed: Any, resolved: Any) -> bool:
    """Whether two values mean the same to MaxText; of a mapping only the composed part has to agree."""
    if isinstance(composed, Mapping) and isinstance(resolved, Mapping):
        return all(same(value, resolved.get(name)) for name, value in composed.items())
    return bool(_normalise(composed) == _normalise(resolved))


def _leaves_open(value: Any) -> bool:
    """Whether a value asks MaxText to choose: empty, zero or -1, as in `steps=-1` or `tokenizer_path=`."""
    return not isinstance(value, bool) and (not value or value == -1 or _normalise(value) is None)


def _normalise(value: Any) -> Any:
    value = plain(value)
    # MaxText reads the text "none" as null for every key, and "" as null for several.
    return None if isinstance(value, str) and value.lower() in ("", "none") else value


def plain(value: Any) -> Any:
    """Enums, dtypes and tuples as the plain data that YAML and JSON know."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(getattr(value, "name", value))


def _resolved_origin(key: str, resolved: Any, model: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    if key in model and same(model[key], resolved):
        return "MaxText's model file"
    if key in base and same(base[key], resolved):
        return "MaxText's base.yml"
    return DERIVED


def as_records(differences: list[Difference]) -> list[dict[str, Any]]:
    """Differences as JSON-ready mappings."""
    return [asdict(difference) for difference in differences]
