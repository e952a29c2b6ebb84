"""The charts that a page shows, with their titles and captions; and why others are left out."""

from collections.abc import Sequence
from dataclasses import dataclass

from primus_hydra.objective import Objective
from primus_hydra.report import charts, row_charts, series, traces
from primus_hydra.report.charts import Panel
from primus_hydra.report.heat_map import is_mostly_empty, make_heat_map
from primus_hydra.report.points import Point
from primus_hydra.report.traces import Traces

_ZOOM = "Drag to move, Shift and scroll to zoom, double-click to go back."


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One chart of the page."""

    name: str
    """Unique in the page."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
    is_wide: bool = True
    """Takes the whole width, where there is room for two."""


def list_figures(
    points: Sequence[Point], objective: Objective, steps: Traces
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """The figures for which there is data, and one sentence for each that is left out."""
    found = [
        _make_scores(points, objective),
        _make_memory(points),
        _make_heat_map(points, objective),
        _make_front(points, objective),
        _make_step_times(steps),
        _make_losses(points, steps),
    ]
    figures = tuple(each for each in found if isinstance(each, Figure))
    return figures, tuple(each for each in found if isinstance(each, str))


def _make_scores(points: Sequence[Point], objective: Objective) -> Figure | str:
    scores = series.list_scores(points)
    if not scores:
        return f"There is no chart of {objective.title}: no point has a score."
    total = sum(point.row.rank is not None for point in points)
    return Figure(
        name="scores",
        title=f"Ranking by {objective.title}",
        caption=f"{_first(len(scores), total)}Bars: the intervals that decide about ties. Diamond: first place.",
        panels=(Panel("", row_charts.draw_scores(scores, objective)),),
        is_wide=False,
    )


def _make_memory(points: Sequence[Point]) -> Figure | str:
    memory, kind = series.list_memory(points), series.find_memory_kind(points)
    if not memory or kind is None:
        return "There is no chart of memory: no completed run recorded a peak."
    total = len(series.list_memory(points, limit=len(points)))
    spread = " Line: least to most of the repeats." if any(each.low_gib < each.high_gib for each in memory) else ""
    return Figure(
        name="memory",
        title=f"Peak {kind} memory",
        caption=f"{_first(len(memory), total)}In the order of the ranking.{spread}",
        panels=(Panel("", row_charts.draw_memory(memory, kind)),),
        is_wide=False,
    )


def _make_heat_map(points: Sequence[Point], objective: Objective) -> Figure | str:
    heat = make_heat_map(points, objective)
    if heat is None:
        return "There is no heat map: fewer than two keys vary among points with a score."
    if is_mostly_empty(heat):
        pairs = f"the values of {heat.row_key} and {heat.column_key}"
        return f"There is no heat map: {pairs} were not combined; more than half of its cells would be empty."
    more = f" The first {len(heat.panels)} of {heat.num_panels} maps." if heat.num_panels > len(heat.panels) else ""
    return Figure(
        name="heat-map",
        title=f"{objective.title} over {heat.row_key} and {heat.column_key}",
        caption=f"A stronger colour is better; a cell shows its best point.{more}",
        panels=charts.draw_heat_map(heat, objective),
    )


def _make_front(points: Sequence[Point], objective: Objective) -> Figure | str:
    speed, kind = series.choose_speed(objective), series.find_memory_kind(points)
    front = series.list_front(points, speed)
    if kind is None or len(front) < 2:
        return "There is no chart of speed against memory: it needs two completed points that recorded both."
    same = "Memory that differs by less than 1 % counts as equal."
    ranks = "Numbers are ranks. " if len(front) <= charts.MAX_RANKS else ""
    return Figure(
        name="front",
        title="Speed against memory",
        caption=f"No other point beats one on the front in both. {same} {ranks}{_ZOOM}",
        panels=(Panel("", charts.draw_front(front, kind, speed)),),
        is_wide=False,
    )


def _make_losses(points: Sequence[Point], steps: Traces) -> Figure | str:
    losses = traces.list_losses(steps)
    if not any(point.loss is not None for point in losses):
        return "There are no loss curves: no step was recorded."
    ends = traces.list_last_finite(steps)
    total = sum(point.row.rank is not None for point in points)
    shown = sum(point.row.rank is not None for point in points if point.label in steps)
    diverged = "Points whose loss diverged or that were stopped early are shown too. " if len(steps) > shown else ""
    first = _first(shown, total)
    repeat = "The first completed repeat. " if any(len(runs) > 1 for runs in steps.values()) else ""
    cross = "A cross marks the last finite loss. " if ends else ""
    return Figure(
        name="losses",
        title="Loss",
        caption=f"{first}{repeat}{diverged}{cross}Click a name to single it out, Shift and click for more. {_ZOOM}",
        panels=(Panel("", charts.draw_losses(losses, ends)),),
    )


def _make_step_times(steps: Traces) -> Figure | str:
    times = traces.list_step_times(steps)
    if not times:
        return f"There is no chart of step times: no run measured {traces.MINIMUM_STEPS} steps after its warm-up."
    is_pooled = any(len(runs) > 1 for runs in steps.values())
    pooled = "The steps of all completed repeats. " if is_pooled else ""
    return Figure(
        name="step-times",
        title="Step times",
        caption=f"{pooled}Tick: the median. Bar: the middle half. Line: the middle 90 %. Marks: single steps.",
        panels=(Panel("", row_charts.draw_step_times(times, traces.list_step_marks(steps))),),
        is_wide=False,
    )


def _first(shown: int, total: int) -> str:
    return f"The best {shown} of {total} points. " if shown < total else ""
