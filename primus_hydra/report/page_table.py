"""The ranked table of the page and the list of points without a result, as plain data."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from primus_hydra.objective import Objective
from primus_hydra.report.labels import UNKNOWN, show_overrides
from primus_hydra.report.model import FINISHED, FOREIGN, PENDING, Row, Run
from primus_hydra.report.page_columns import NUM_FIRST, Cell, list_figure_columns, make_cells
from primus_hydra.report.points import Point

_LEFT_OUT = frozenset({"invalid", "wont_fit", "skipped"})


class Column(NamedTuple):
    """One column."""

    title: str
    is_number: bool
    first: str
    """Order of the first click: `ascending` or `descending`."""


class RunLines(NamedTuple):
    """One repeat of a point."""

    title: str
    command: str


class TableRow(NamedTuple):
    """One point."""

    state: str
    is_first: bool
    cells: tuple[Cell, ...]
    facts: tuple[tuple[str, str], ...]
    runs: tuple[RunLines, ...]
    reason: str
    """Shown below the name: why there is no score, or what became of repeats."""


class Table(NamedTuple):
    """The ranked table; columns that nobody has a value for are left out."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]


class Failure(NamedTuple):
    """Points that ended without a result for the same reason."""

    state: str
    mark: str
    reason: str
    labels: tuple[str, ...]


def make_table(points: Sequence[Point], objective: Objective) -> Table:
    """The points of a report, in its order."""
    figures = list_figure_columns(points, objective)
    figure_columns = [
        Column(figure.title, True, "descending" if figure.maximize else "ascending") for figure in figures
    ]
    columns = [
        Column("rank", True, "ascending"),
        Column(_title_points(points), False, "ascending"),
        *figure_columns[:NUM_FIRST],
        Column("state", False, "ascending"),
        *figure_columns[NUM_FIRST:],
    ]
    cells = list(zip(*map(make_cells, figures), strict=True)) if figures else [()] * len(points)
    return Table(tuple(columns), tuple(_make_row(point, own) for point, own in zip(points, cells, strict=True)))


def _title_points(points: Sequence[Point]) -> str:
    """The keys where the labels are their values, in their order."""
    is_one_sweep = len({point.row.sweep for point in points}) == 1
    is_known = all(UNKNOWN not in point.values.values() for point in points)
    return (" · ".join(points[0].values) if is_one_sweep and is_known else "") or "point"


def list_failures(points: Sequence[Point]) -> tuple[Failure, ...]:
    """Points without a score that are not still to come, grouped by state and reason, in the order of the table."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for point in points:
        if point.row.rank is None and point.row.state not in PENDING:
            reason = point.row.reason or "No reason is recorded."
            groups.setdefault((describe_state(point.row), _mark(point.row), reason), []).append(point.label)
    return tuple(Failure(*key, tuple(labels)) for key, labels in groups.items())


def describe_state(row: Row) -> str:
    """`failed (out of memory)`."""
    state = row.state.replace("_", " ")
    return f"{state} ({_failure(row)})" if row.failure else state


def _failure(row: Row) -> str:
    return (row.failure or "").replace("_", " ")


def _make_row(point: Point, figures: Sequence[Cell]) -> TableRow:
    row = point.row
    cells = [
        Cell("" if row.rank is None else str(row.rank), "" if row.rank is None else str(row.rank), is_number=True),
        Cell(point.label, point.label, is_point=True),
        Cell(row.state.replace("_", " "), describe_state(row), small=_failure(row), mark=_mark(row)),
    ]
    cells[2:2] = figures[:NUM_FIRST]
    cells += figures[NUM_FIRST:]
    facts = [("overrides", show_overrides(row.differs)), ("sweep", row.sweep)]
    return TableRow(
        state=row.state,
        is_first=row.rank == 1,
        cells=tuple(cells),
        facts=tuple((name, value) for name, value in facts if value),
        runs=tuple(_describe_run(run) for run in point.runs),
        reason=row.reason if row.rank is None or row.num_completed < row.num_repeats else "",
    )


def _describe_run(run: Run) -> RunLines:
    folder = os.fsencode(run.folder).decode("utf-8", "backslashreplace")
    return RunLines(f"Repeat {run.repeat}, {run.state}: {folder}" if run.repeat > 1 else folder, run.command)


def _mark(row: Row) -> str:
    if row.state == FOREIGN:
        return "bad" if row.failure else "foreign"
    if row.state in FINISHED:
        return "good"
    if row.state in _LEFT_OUT:
        return "left-out"
    return "pending" if row.state in PENDING else "bad"
