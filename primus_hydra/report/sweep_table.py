"""The table of a sweep: ranked runs first, then what has no score, with its reason."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from primus_hydra.report.rows import Row

_UNKNOWN = "-"


def sweep_table(rows: Sequence[Row]) -> RenderableType:
    """What a person reads when a sweep is over, or while it runs: the ranking, then why the others have no score.

    Args:
        rows: see `rows.read_rows`.
    """
    table = Table(title=Text(describe_ranking(rows)), title_justify="left")
    table.add_column("rank", justify="right")
    table.add_column("what differs", overflow="fold")
    table.add_column("tok/s/dev", justify="right")
    table.add_column("step time, s", justify="right", overflow="fold")
    table.add_column("loss", justify="right")
    table.add_column("memory, GiB", justify="right", overflow="fold")
    table.add_column("state", overflow="fold")
    for row in rows:
        table.add_row(
            _UNKNOWN if row.rank is None else str(row.rank),
            Text(row.differs),
            _UNKNOWN if row.tokens_per_second_per_device is None else f"{row.tokens_per_second_per_device:,.0f}",
            _step_time(row),
            _UNKNOWN if row.final_loss is None else f"{row.final_loss:.4f}",
            _memory(row),
            Text(_state(row)),
        )
    reasons = [Text(f"{row.differs}: {row.reason}", overflow="fold") for row in rows if row.rank is None and row.reason]
    return Group(table, *reasons)


def describe_ranking(rows: Sequence[Row]) -> str:
    """What the ranking rests on, and who leads."""
    leaders = [row for row in rows if row.rank == 1]
    if not leaders:
        return f"{len(rows)} runs, none with a score."
    steps = [row.num_steps_measured for row in rows if row.rank is not None and row.num_steps_measured is not None]
    basis = f"tokens/s/device from the median of {min(steps)} to {max(steps)} steps after the warm-up"
    if len(leaders) > 1:
        return f"{len(rows)} runs; {len(leaders)} share the first rank: their step times overlap. Ranked by {basis}."
    return f"{len(rows)} runs; best: {leaders[0].differs}. Ranked by {basis}."


def _step_time(row: Row) -> str:
    if row.step_time_s is None:
        return _UNKNOWN
    return f"{row.step_time_s:.4g} ({row.step_time_p25_s:.4g} to {row.step_time_p75_s:.4g})"


def _memory(row: Row) -> str:
    parts = [("device", row.peak_device_memory_gib), ("host", row.peak_host_memory_gib)]
    return ", ".join(f"{name} {value:.2f}" for name, value in parts if value is not None) or _UNKNOWN


def _state(row: Row) -> str:
    return f"{row.state} ({row.failure.replace('_', ' ')})" if row.failure else row.state
