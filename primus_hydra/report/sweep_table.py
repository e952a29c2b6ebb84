"""The table of a sweep: ranked runs first, then what has no score, with its reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from primus_hydra.report.rows import Row

_UNKNOWN = "-"
_WIDE = 110
_NARROW_NOTE = f"With {_WIDE} columns or more: quartiles of the step time, loss and memory too."


@dataclass(frozen=True, slots=True)
class _SweepTable:
    """Draws itself for the width that there is: a column of four characters cannot be read."""

    rows: Sequence[Row]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The ranking, then why the others have no score."""
        columns = _COLUMNS if options.max_width >= _WIDE else _NARROW_COLUMNS
        table = Table(title=Text(describe_ranking(self.rows)), title_justify="left")
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                no_wrap=column.is_number,
                overflow="fold",
                min_width=column.min_width,
            )
        for row in self.rows:
            table.add_row(*(Text(column.show(row)) for column in columns))
        yield table
        if columns is _NARROW_COLUMNS:
            yield Text(_NARROW_NOTE)
        for row in self.rows:
            if row.rank is None and row.reason:
                yield Text(f"{row.differs}: {row.reason}", overflow="fold")


def sweep_table(rows: Sequence[Row]) -> RenderableType:
    """What a person reads when a sweep is over, or while it runs: the ranking, then why the others have no score.

    Args:
        rows: see `rows.read_rows`.
    """
    return _SweepTable(rows)


def describe_ranking(rows: Sequence[Row]) -> str:
    """What the ranking rests on, and who leads."""
    leaders = [row for row in rows if row.rank == 1]
    count = _count(len(rows), "run")
    if not leaders:
        return f"{count}, none with a score."
    steps = [row.num_steps_measured for row in rows if row.rank is not None and row.num_steps_measured is not None]
    taken = f"the median of {_span(steps)} " if steps else "the median step "
    basis = f"tokens/s/device from {taken}after the warm-up"
    if len(leaders) > 1:
        return f"{count}; {len(leaders)} share the first rank: their step times overlap. Ranked by {basis}."
    return f"{count}; best: {leaders[0].differs}. Ranked by {basis}."


def _span(steps: Sequence[int]) -> str:
    least, most = min(steps), max(steps)
    return _count(most, "step") if least == most else f"{least} to {most} steps"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _rank(row: Row) -> str:
    return _UNKNOWN if row.rank is None else str(row.rank)


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


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    show: Callable[[Row], str]
    is_number: bool = True
    """Never folded, and flush right."""
    min_width: int | None = None


_RANK = _Column("rank", _rank)
_DIFFERS = _Column("what differs", lambda row: row.differs, is_number=False, min_width=24)
_SPEED = _Column("tok/s/dev", _speed)
_STATE = _Column("state", _state, is_number=False, min_width=9)
_NARROW_COLUMNS = (_RANK, _DIFFERS, _SPEED, _Column("step time, s", _median), _STATE)
_COLUMNS = (
    *(_RANK, _DIFFERS, _SPEED),
    _Column("step time, s", _step_time, is_number=False, min_width=12),
    _Column("loss", _loss),
    _Column("memory, GiB", _memory, is_number=False, min_width=13),
    _STATE,
)
