"""The table of a report: ranked points first, then what has no score, with its reason."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from primus_hydra.objective import Objective
from primus_hydra.report.model import Report, Row
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.ranking import describe_ranking, format_figure
from primus_hydra.report.short_names import shorten

_UNKNOWN = "-"
_WIDE = 110
_MAX_NAMES = 4
_NARROW_NOTE = f"With {_WIDE} columns or more: spread, loss and memory too."


@dataclass(frozen=True, slots=True)
class _SweepTable:
    """Draws itself for the width that there is: a column of four characters cannot be read."""

    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The ranking, then why the others have no score."""
        is_wide = options.max_width >= _WIDE
        title, names = shorten([row.differs for row in self.report.rows])
        named = dict(zip(self.report.rows, names, strict=True))
        columns = _choose_columns(
            self.report, _Column(title, named.__getitem__, is_number=False, min_width=24), is_wide
        )
        table = Table(title=Text(describe_ranking(self.report)), title_justify="left")
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                no_wrap=column.is_number,
                overflow="fold",
                min_width=column.min_width,
            )
        for row in self.report.rows:
            table.add_row(*(Text(make_plain(column.show(row))) for column in columns))
        yield table
        if not is_wide:
            yield Text(_NARROW_NOTE)
        yield from _tell_reasons(named)


def sweep_table(report: Report) -> RenderableType:
    """What a person reads when a sweep is over, or while it runs: the ranking, then why the others have no score.

    Args:
        report: see `read.read_report`.
    """
    return _SweepTable(report)


def _tell_reasons(named: Mapping[Row, str]) -> Iterator[Text]:
    """Why points have no score, or ended as they did; a reason that many share is told once."""
    points: defaultdict[str, list[str]] = defaultdict(list)
    for row, name in named.items():
        if row.reason:
            points[row.reason].append(name)
    for reason, names in points.items():
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        yield Text(make_plain(f"{'; '.join(names[:_MAX_NAMES])}{more}: {reason}"), overflow="fold")


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    show: Callable[[Row], str]
    is_number: bool = True
    """Never folded, and flush right."""
    min_width: int | None = None


def _choose_columns(report: Report, name: _Column, is_wide: bool) -> list[_Column]:
    """Rank, the point's name, the objective, then the other figures; no column without anything in it."""
    objective, rows = report.objective, report.rows
    has_repeats = any(row.num_repeats > 1 for row in rows)
    shows_objective = objective.name not in ("tokens_per_second_per_device", "step_time_s")
    columns = [
        _Column("rank", lambda row: _UNKNOWN if row.rank is None else str(row.rank)),
        _Column("sweep", lambda row: row.sweep, is_number=False, min_width=8)
        if len({row.sweep for row in rows}) > 1
        else None,
        name,
        _Column(objective.title, _score(objective)) if shows_objective else None,
        _Column("tok/s/dev", _speed),
        _Column("range of repeats", _range(objective), is_number=False, min_width=9)
        if has_repeats and is_wide
        else None,
        _Column("step time, s", _step_time, is_number=False, min_width=12)
        if is_wide
        else _Column("step time, s", _median),
        _Column("loss", _loss) if is_wide and objective.name != "final_loss" else None,
        _Column("memory, GiB", _memory, is_number=False, min_width=13) if is_wide else None,
        _Column("repeats", _repeats) if has_repeats else None,
        _Column("state", _state, is_number=False, min_width=9),
    ]
    return [column for column in columns if column is not None]


def _score(objective: Objective) -> Callable[[Row], str]:
    return lambda row: _UNKNOWN if row.score is None else format_figure(row.score, objective)


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


def _median(row: Row) -> str:
    return _UNKNOWN if row.step_time_s is None else f"{row.step_time_s:.4g}"


def _loss(row: Row) -> str:
    return _UNKNOWN if row.final_loss is None else f"{row.final_loss:.4f}"


def _step_time(row: Row) -> str:
    if row.step_time_s is None or row.step_time_p25_s is None or row.step_time_p75_s is None:
        return _median(row)
    return f"{row.step_time_s:.4g} ({row.step_time_p25_s:.4g} to {row.step_time_p75_s:.4g})"


def _memory(row: Row) -> str:
    parts = [("device", row.peak_device_memory_gib), ("host", row.peak_host_memory_gib)]
    return ", ".join(f"{name} {value:.2f}" for name, value in parts if value is not None) or _UNKNOWN


def _state(row: Row) -> str:
    return f"{row.state} ({row.failure.replace('_', ' ')})" if row.failure else row.state
