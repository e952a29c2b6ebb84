"""What differs between the points of a report, and what all of them share."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from primus_hydra.errors import ConfigError
from primus_hydra.identity import IDENTITY_FREE_KEYS, NOT_SET
from primus_hydra.report.labels import UNKNOWN
from primus_hydra.report.model import Run
from primus_hydra.report.points import Point
from primus_hydra.xla_flags import parse_flags

_MACHINE = ("platform", "device_kind", "num_devices")


class Difference(NamedTuple):
    """One key that the points do not agree about."""

    kind: str
    """`key`, `environment`, `XLA flag`, `version` or `machine`."""
    name: str
    values: tuple[str, ...]
    """As text, one for each point."""


class Shared(NamedTuple):
    """One entry that all points that know it agree about."""

    kind: str
    name: str
    value: str


def list_differences(points: Sequence[Point]) -> tuple[Difference, ...]:
    """Every key with more than one value, grouped by kind."""
    tables = [_read_facts(point) for point in points]
    names = dict.fromkeys(name for table in tables for name in table)
    kinds_known = [{kind for kind, _ in table} for table in tables]
    found = []
    for kind, name in sorted(names, key=lambda key: (_KINDS.index(key[0]), key[1])):
        values = tuple(
            table.get((kind, name), NOT_SET if kind in known else point.values.get(name, UNKNOWN))
            for point, table, known in zip(points, tables, kinds_known, strict=True)
        )
        if len(set(values) - {UNKNOWN}) > 1:
            found.append(Difference(kind, name, values))
    return tuple(found)


def list_shared(points: Sequence[Point]) -> tuple[Shared, ...]:
    """Versions, machine, environment and flags that are the same wherever they are known; no MaxText keys."""
    tables = [_read_facts(point) for point in points]
    differing = {(difference.kind, difference.name) for difference in list_differences(points)}
    values = {key: value for table in tables for key, value in table.items()}
    names = sorted(values.keys() - differing, key=lambda key: (_KINDS.index(key[0]), key[1]))
    return tuple(Shared(kind, name, values[kind, name]) for kind, name in names if kind != "key")


_KINDS = ("key", "environment", "XLA flag", "version", "machine")


def _read_facts(point: Point) -> dict[tuple[str, str], str]:
    """(kind, name) -> value of the point's first run."""
    if not point.runs:
        return {}
    run = point.runs[0]
    keys = {key: value for key, value in run.composed.items() if key not in IDENTITY_FREE_KEYS}
    environment = {name: value for name, value in run.environment.items() if name != "XLA_FLAGS"}
    groups: list[tuple[str, Mapping[str, Any]]] = [
        ("key", keys),
        ("environment", environment),
        ("XLA flag", _read_flags(run)),
        ("version", run.versions),
        ("machine", {"trainer": " ".join(run.trainer)} if run.trainer else {}),
        ("machine", {name: run.result[name] for name in _MACHINE if run.result.get(name) is not None}),
    ]
    return {(kind, name): _show(value) for kind, values in groups for name, value in values.items()}


def _read_flags(run: Run) -> dict[str, str]:
    text = run.environment.get("XLA_FLAGS", "")
    try:
        return {name: "" if value is None else value for name, value in parse_flags(text).items()}
    except ConfigError:
        return {"XLA_FLAGS": text}


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
