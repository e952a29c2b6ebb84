"""Charts with one line a point: its name above, what is known of it on a track below."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import altair as alt

from primus_hydra.objective import Objective
from primus_hydra.report.digits import choose_decimals, format_number, format_range
from primus_hydra.report.series import MemoryPoint, ScorePoint
from primus_hydra.report.traces import StepMark, StepTimes
from primus_hydra.report.vega import Spec, make_data, make_spec, make_tips

_ROW_HEIGHT_PX = 40
_LOG_FROM_RATIO = 20
"""Step times that differ more than this are drawn on a logarithmic axis."""
_ROOM = 2.5
"""The axis of step times goes this far beyond the middle 90 % of the measured ones, if there is anything to show."""
_WARMUP, _FAR_OFF, _BEYOND = "warm-up step, not measured", "far-off step", "either, beyond the axis"


def draw_scores(points: Sequence[ScorePoint], objective: Objective) -> Spec:
    """The objective of each point with its interval."""
    decimals = choose_decimals(point.score for point in points)
    rows = [
        {
            "label": point.label,
            "score": point.score,
            "low": point.low,
            "high": point.high,
            "place": "first" if point.rank == 1 else "other",
            "shown": format_number(point.score, decimals),
            "interval": format_range(point.low, point.high, decimals),
            "rank": str(point.rank),
        }
        for point in points
    ]
    tooltip = make_tips(label="point", rank="rank", shown=objective.title, interval="interval")
    base = alt.Chart(make_data(rows)).encode(y=_row_axis(rows), tooltip=tooltip)
    scale, places = alt.Scale(zero=False, padding=12), ["first", "other"]
    colors = alt.Scale(domain=places, range=["var(--accent)", "var(--muted)"])
    shapes = alt.Scale(domain=places, range=["diamond", "circle"])
    color = alt.Color("place:N", scale=colors, legend=None)
    intervals = base.mark_rule(strokeWidth=5, strokeCap="round", opacity=0.45)
    intervals = intervals.encode(x=alt.X("low:Q", title=objective.title, scale=scale), x2="high:Q", color=color)
    dots = base.mark_point(filled=True, size=90, opacity=1)
    dots = dots.encode(x="score:Q", color=color, shape=alt.Shape("place:N", scale=shapes, legend=None))
    return make_spec(alt.layer(*_row_texts(base), intervals, dots), height=_ROW_HEIGHT_PX * len(rows))


def draw_memory(points: Sequence[MemoryPoint], kind: str) -> Spec:
    """Peak memory of each point as a bar, least to most of its repeats as a line."""
    title = f"peak {kind} memory, GiB"
    decimals = choose_decimals(point.memory_gib for point in points)
    rows = [
        {
            "label": point.label,
            "memory": point.memory_gib,
            "low": point.low_gib,
            "high": point.high_gib,
            "shown": format_number(point.memory_gib, decimals),
            "interval": format_range(point.low_gib, point.high_gib, decimals),
        }
        for point in points
    ]
    tooltip = make_tips(label="point", shown=title, interval="over repeats")
    base = alt.Chart(make_data(rows)).encode(y=_row_axis(rows), tooltip=tooltip)
    bars = base.mark_bar(height=8, cornerRadius=2, color="var(--c3)").encode(x=alt.X("memory:Q", title=title))
    spread = base.mark_rule(strokeWidth=2, color="var(--ink)").encode(x=alt.X("low:Q", title=title), x2="high:Q")
    return make_spec(alt.layer(*_row_texts(base), bars, spread), height=_ROW_HEIGHT_PX * len(rows))


def draw_step_times(times: Sequence[StepTimes], marks: Sequence[StepMark]) -> Spec:
    """For each point the middle 90 % (line), the middle half (bar) and the median (tick) of its step times."""
    decimals = choose_decimals(each.median_s for each in times)
    rows = [
        {
            **each._asdict(),
            "shown": f"{format_number(each.median_s, decimals)} s",
            "half": f"{format_range(each.p25_s, each.p75_s)} s",
            "most": f"{format_range(each.p5_s, each.p95_s)} s",
        }
        for each in times
    ]
    scale = _time_scale(find_time_range(times, marks))
    tooltip = make_tips(label="point", shown="median", half="middle half", most="middle 90 %", num_steps="steps")
    base = alt.Chart(make_data(rows)).encode(y=_row_axis(rows), tooltip=tooltip)
    axis = partial(alt.X, title="step time, s", scale=scale)
    most = base.mark_rule(strokeWidth=2, color="var(--accent)", opacity=0.6).encode(x=axis("p5_s:Q"), x2="p95_s:Q")
    half = base.mark_bar(height=10, color="var(--accent)", opacity=0.6).encode(x=axis("p25_s:Q"), x2="p75_s:Q")
    median = base.mark_tick(thickness=2.5, size=16, color="var(--ink)").encode(x=axis("median_s:Q"))
    singles = _draw_step_marks(marks, axis("step_time_s:Q"), _row_axis(rows), find_time_range(times, marks))
    return make_spec(alt.layer(*_row_texts(base), most, half, median, singles), height=_ROW_HEIGHT_PX * len(rows))


def find_time_range(times: Sequence[StepTimes], marks: Sequence[StepMark]) -> tuple[float, float]:
    """Least and greatest step time of the axis: a step that compiles must not squeeze the measured ones."""
    least, greatest = min(each.p5_s for each in times), max(each.p95_s for each in times)
    single = [mark.step_time_s for mark in marks]
    low = max(least / _ROOM, min([least, *single]))
    high = min(greatest * _ROOM, max([greatest, *single]))
    return (low, high) if low < high else (low * 0.9, high * 1.1)


def _draw_step_marks(marks: Sequence[StepMark], x: alt.X, y: alt.Y, ends: tuple[float, float]) -> alt.Chart:
    rows = [
        {
            **mark._asdict(),
            "kind": _WARMUP if mark.is_warmup else _FAR_OFF,
            "drawn": _BEYOND if not ends[0] <= mark.step_time_s <= ends[1] else _WARMUP if mark.is_warmup else _FAR_OFF,
            "shown": f"{format_number(mark.step_time_s)} s",
            "run": str(mark.repeat),
        }
        for mark in marks
    ]
    shapes = {_WARMUP: "triangle-up", _FAR_OFF: "circle", _BEYOND: "triangle-right"}
    names = [name for name in shapes if any(row["drawn"] == name for row in rows)]
    legend = alt.Legend(orient="top", title=None, columns=alt.ExprRef("width > 420 ? 3 : 1"))
    shape_scale = alt.Scale(domain=names, range=[shapes[name] for name in names])
    chart: alt.Chart = alt.Chart(make_data(rows)).mark_point(size=40, strokeWidth=1.4, opacity=1, color="var(--c2)")
    shape = alt.Shape("drawn:N", scale=shape_scale, title=None, legend=legend)
    tooltip = make_tips(label="point", run="repeat", step="step", shown="step time", kind="this is a")
    return chart.encode(x=x, y=y, shape=shape, tooltip=tooltip)


def _row_axis(rows: Sequence[Mapping[str, Any]]) -> alt.Y:
    """A line for each point in the order given; its name is written above it, where there is room for a long one."""
    return alt.Y("label:N", scale=alt.Scale(domain=[row["label"] for row in rows]), axis=None)


def _row_texts(base: alt.Chart) -> list[alt.Chart]:
    """A track for each line, its name on the left and its figure on the right above it."""
    track = base.mark_rule(color="var(--line)").encode(x=alt.value(0), x2=alt.value(alt.ExprRef("width")))
    name = base.mark_text(align="left", baseline="bottom", dy=-7, limit=alt.ExprRef("width - 80"))
    figure = base.mark_text(align="right", baseline="bottom", dy=-7, color="var(--muted)")
    return [
        track,
        name.encode(x=alt.value(0), text="label:N"),
        figure.encode(x=alt.value(alt.ExprRef("width")), text="shown:N"),
    ]


def _time_scale(ends: tuple[float, float]) -> alt.Scale:
    kind: Literal["log", "linear"] = "log" if ends[1] > _LOG_FROM_RATIO * ends[0] else "linear"
    return alt.Scale(type=kind, domain=list(ends), nice=False, zero=False, padding=12, clamp=True)
