"""The rows of a report with a short name each, the value of every swept key, and their runs."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from primus_hydra.report.model import Report, Row, Run
from primus_hydra.report.plain_text import make_plain

FINISHED = frozenset({"completed", "foreign"})
"""States whose figures may be compared."""
_MAX_LABEL = 60
DEFAULT = "default"
"""Value of a swept key for a point that does not set it and whose configuration does not tell it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One row of a report, as charts name it."""

    row: Row
    label: str
    """Short, and unique in the report."""
    values: Mapping[str, str]
    """Swept key -> this point's value as text; every point has the same keys."""
    runs: tuple[Run, ...]
    """The repeats; empty only if the report is inconsistent."""


def read_points(report: Report) -> tuple[Point, ...]:
    """The rows of a report, in its order."""
    runs = _group_runs(report)
    firsts = [found[0] if found else None for found in runs]
    keys = _find_swept_keys(report.runs)
    values = [{key: _read_value(run, key) for key in keys} for run in firsts]
    swept = [key for key in keys if len({each[key] for each in values}) > 1]
    points = [
        Point(row=row, label=_make_label(row, own), values=own, runs=found)
        for row, found, own in zip(
            report.rows, runs, [{key: each[key] for key in swept} for each in values], strict=True
        )
    ]
    return _make_unique(points)


def order_values(points: Sequence[Point], key: str) -> tuple[str, ...]:
    """The values of a swept key: numbers by size, texts in the order of the run folders."""
    by_folder = sorted(points, key=lambda point: point.row.point)
    distinct = list(dict.fromkeys(point.values[key] for point in by_folder))
    try:
        return tuple(sorted(distinct, key=float))
    except ValueError:
        return tuple(distinct)


def is_number(text: str) -> bool:
    """Whether a value is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _group_runs(report: Report) -> list[tuple[Run, ...]]:
    """The repeats of every row."""
    point_of = {(run.sweep, run.name): run.point for run in report.runs}
    repeats: dict[tuple[str, str | None], list[Run]] = defaultdict(list)
    for run in report.runs:
        repeats[run.sweep, run.point].append(run)
    return [tuple(repeats[row.sweep, point_of.get((row.sweep, row.point))]) for row in report.rows]


def _find_swept_keys(runs: Sequence[Run]) -> list[str]:
    """Keys whose override is not the same text in all runs, in the order of the command line."""
    seen: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for key, value in _read_overrides(run).items():
            seen[key].append(value)
    return [key for key, values in seen.items() if len(set(values)) > 1 or len(values) < len(runs)]


def _read_overrides(run: Run) -> dict[str, str]:
    pairs = [text.lstrip("+").partition("=") for text in run.overrides]
    return {key: _unquote(value) for key, _, value in pairs}


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _read_value(run: Run | None, key: str) -> str:
    if run is None:
        return DEFAULT
    overrides = _read_overrides(run)
    return overrides[key] if key in overrides else _show_value(run.composed.get(key, DEFAULT))


def _show_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _make_label(row: Row, values: Mapping[str, str]) -> str:
    """Values say enough where they are words; a number, an empty text or a switch needs its key."""
    parts = [value if _speaks(value) else f"{key.rpartition('.')[2]}={value or '""'}" for key, value in values.items()]
    text = make_plain(" · ".join(parts) or row.differs or row.point)
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def _speaks(value: str) -> bool:
    return value.lower() not in {"", "true", "false", "null", "none", DEFAULT} and not is_number(value)


def _make_unique(points: Sequence[Point]) -> tuple[Point, ...]:
    """Name the sweep where labels repeat, and number those that still do."""
    for describe in (lambda point, _: point.row.sweep, lambda _, number: f"#{number}"):
        count = Counter(point.label for point in points)
        points = [
            replace(point, label=f"{point.label} ({describe(point, number)})") if count[point.label] > 1 else point
            for number, point in enumerate(points, start=1)
        ]
    return tuple(points)
