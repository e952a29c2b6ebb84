"""The columns of a report's table: what they show of a row, and which of them a width has room for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from primus_hydra.objective import Objective, format_figure
from primus_hydra.report.model import Report, Row
from primus_hydra.report.plain_text import make_plain

_UNKNOWN = "-"
_FRAME = 3
"""Characters that a column takes beside its content: its left border and a space on either side."""
_MIN_NAME = 24


@dataclass(frozen=True, slots=True)
class Column:
    """One column, before its width is known."""

    title: str
    show: Callable[[Row], str]
    is_number: bool = True
    """Flush right, and on one line: a number or a range of numbers."""
    order: int | None = None
    """Columns without it are always there; of the others the lowest are left out last."""
    folds: bool = False
    """Content may be folded inside words."""

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """Content, ready to be drawn."""
        return [make_plain(self.show(row)) for row in rows]

    def natural_width(self, rows: Sequence[Row]) -> int:
        """Width at which nothing is folded."""
        return max(map(cell_len, [self.title, *self.cells(rows)]))

    def min_width(self, rows: Sequence[Row]) -> int:
        """Width at which it can still be read: titles and words are whole, numbers are on one line."""
        if self.folds:
            return min(_MIN_NAME, self.natural_width(rows))
        cells = self.cells(rows)
        unbroken = cells if self.is_number else [word for cell in cells for word in cell.split()]
        return max(map(cell_len, [*self.title.split(), *unbroken]), default=0)


def fit(columns: Sequence[Column], rows: Sequence[Row], width: int) -> tuple[dict[Column, int], list[Column]]:
    """Which columns a width has room for.

    Returns:
        The columns that are shown, each with the width of its content, and those that are left out.
    """
    shown = {column: column.min_width(rows) for column in columns if column.order is None}
    left = width - 1 - sum(shown.values()) - _FRAME * len(shown)
    for column in (column for column in shown if column.folds):
        # Where even what is always there has no room, names give way.
        given = max(1, shown[column] + min(left, 0))
        left += shown[column] - given
        shown[column] = given
    for column in sorted((column for column in columns if column.order is not None), key=lambda each: each.order or 0):
        needed = column.min_width(rows) + _FRAME
        if needed <= left:
            shown[column] = needed - _FRAME
            left -= needed
    for column in [column for column in columns if column in shown]:
        more = max(0, min(left, column.natural_width(rows) - shown[column]))
        shown[column] += more
        left -= more
    ordered = {column: shown[column] for column in columns if column in shown}
    return ordered, [column for column in columns if column not in shown]


def list_columns(report: Report, name: Column) -> list[Column]:
    """Rank, the point's name, the objective, then the other figures; no other column without anything in it."""
    objective, rows = report.objective, report.rows
    has_repeats = any(row.num_repeats > 1 for row in rows)
    best = next((row.score for row in rows if row.rank == 1), None)
    is_speed, is_time = objective.name == "tokens_per_second_per_device", objective.name == "step_time_s"
    columns = [
        Column("rank", lambda row: _UNKNOWN if row.rank is None else str(row.rank)),
        Column("sweep", lambda row: row.sweep, is_number=False, order=0)
        if len({row.sweep for row in rows}) > 1
        else None,
        name,
        None if is_speed or is_time else Column(objective.title, _score(objective)),
        Column("tok/s/dev", _speed, order=None if is_speed else 4),
        Column("vs best", _share(best), order=1) if best and best > 0 else None,
        Column("range of repeats", _range(objective), order=5) if has_repeats else None,
        Column("step time, s", _step_time, order=None if is_time else 3),
        Column("middle half of the steps, s", _middle_half, order=9),
        Column("loss", _loss, order=6) if objective.name != "final_loss" else None,
        Column("device memory, GiB", _device_memory, order=7),
        Column("host memory, GiB", _host_memory, order=8),
        Column("repeats", _repeats, order=2) if has_repeats else None,
        Column("state", _state, is_number=False),
    ]
    return [column for column in columns if column and (column.order is None or set(column.cells(rows)) != {_UNKNOWN})]


def _score(objective: Objective) -> Callable[[Row], str]:
    return lambda row: _UNKNOWN if row.score is None else format_figure(row.score, objective)


def _share(best: float) -> Callable[[Row], str]:
    return lambda row: _UNKNOWN if row.score is None else f"{row.score / best:.2f}x"


def _range(objective: Objective) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        if row.num_completed < 2 or row.score_low is None or row.score_high is None:
            return _UNKNOWN
        return f"{format_figure(row.score_low, objective)} to {format_figure(row.score_high, objective)}"

    return show


def _repeats(row: Row) -> str:
    return str(row.num_repeats) if row.num_completed == row.num_repeats else f"{row.num_completed} of {row.num_repeats}"


def _speed(row: Row) -> str:
    value = row.tokens_per_second_per_device
    return _UNKNOWN if value is None else f"{value:,.0f}"


def _step_time(row: Row) -> str:
    return _UNKNOWN if row.step_time_s is None else f"{row.step_time_s:.4g}"


def _middle_half(row: Row) -> str:
    if row.step_time_p25_s is None or row.step_time_p75_s is None:
        return _UNKNOWN
    return f"{row.step_time_p25_s:.4g} to {row.step_time_p75_s:.4g}"


def _loss(row: Row) -> str:
    return _UNKNOWN if row.final_loss is None else f"{row.final_loss:.4f}"


def _device_memory(row: Row) -> str:
    return _UNKNOWN if row.peak_device_memory_gib is None else f"{row.peak_device_memory_gib:.2f}"


def _host_memory(row: Row) -> str:
    return _UNKNOWN if row.peak_host_memory_gib is None else f"{row.peak_host_memory_gib:.2f}"


def _state(row: Row) -> str:
    return f"{row.state} ({row.failure.replace('_', ' ')})" if row.failure else row.state
