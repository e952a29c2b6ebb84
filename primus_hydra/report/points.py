"""The rows of a report with a short name each, the value of every swept key, and their runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from primus_hydra.report.labels import DEFAULT, UNKNOWN, make_labels
from primus_hydra.report.model import Report, Row, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One row of a report, as charts name it."""

    row: Row
    label: str
    """Short, and unique in the report."""
    values: Mapping[str, str]
    """Swept key -> this point's value as text; every point has the same keys."""
    runs: tuple[Run, ...]
    """The repeats, in their order; empty only if the report is inconsistent."""


def read_points(report: Report) -> tuple[Point, ...]:
    """The rows of a report, in its order."""
    runs = _group_runs(report)
    firsts = [found[0] if found else None for found in runs]
    keys = _find_swept_keys(report.runs)
    values = [{key: _read_value(run, key) for key in keys} for run in firsts]
    swept = [key for key in keys if len({each[key] for each in values} - {UNKNOWN}) > 1]
    values = [{key: each[key] for key in swept} for each in values]
    return tuple(
        Point(row=row, label=label, values=own, runs=found)
        for row, label, own, found in zip(report.rows, make_labels(report.rows, values), values, runs, strict=True)
    )


def order_values(points: Sequence[Point], key: str) -> tuple[str, ...]:
    """The values of a swept key: numbers by size, texts in the order of the run folders."""
    by_folder = sorted(points, key=lambda point: point.row.point)
    distinct = list(dict.fromkeys(point.values[key] for point in by_folder))
    try:
        return tuple(sorted(distinct, key=float))
    except ValueError:
        return tuple(distinct)


def _group_runs(report: Report) -> list[tuple[Run, ...]]:
    """The repeats of every row."""
    point_of = {(run.sweep, run.name): run.point for run in report.runs}
    repeats: dict[tuple[str, str | None], list[Run]] = defaultdict(list)
    for run in sorted(report.runs, key=lambda run: run.repeat):
        repeats[run.sweep, run.point].append(run)
    return [tuple(repeats[row.sweep, point_of.get((row.sweep, row.point))]) for row in report.rows]


def _find_swept_keys(runs: Sequence[Run]) -> list[str]:
    """Keys whose override is not the same text in all runs that have any, in the order of the command line."""
    runs = [run for run in runs if _is_known(run)]
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
    if run is None or not _is_known(run):
        return UNKNOWN
    overrides = _read_overrides(run)
    return overrides[key] if key in overrides else _show_value(run.composed.get(key, DEFAULT))


def _is_known(run: Run) -> bool:
    """Whether its files tell its configuration: those of a foreign run do not."""
    return bool(run.overrides or run.composed)


def _show_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
