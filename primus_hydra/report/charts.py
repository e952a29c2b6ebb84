"""Charts with two axes: the heat map, speed against memory, and loss curves."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt

from primus_hydra.objective import Objective
from primus_hydra.report.digits import choose_decimals, format_number
from primus_hydra.report.heat_map import NUM_LEVELS, HeatCell, HeatMap
from primus_hydra.report.series import FrontPoint
from primus_hydra.report.traces import LastFinite, LossPoint
from primus_hydra.report.vega import Spec, make_data, make_spec, make_tips, make_zoom

_NUM_COLORS = 8
"""The page has the variables --c1 to --c8."""
_SOLID = [1, 0]
_DASHES = ([12, 8], [4, 6], [2, 10])
"""The best point's curve is solid; the others let it through, and those that share a colour differ in their dashes."""
_WIDEST_PX, _NARROWEST_PX = 3.2, 1.2
"""The best point's curve is the widest and lies below the others: curves that coincide are all seen."""
_CELL_HEIGHT_PX = 46
_PLOT_HEIGHT_PX = 340
MAX_RANKS = 60
"""More points on the front's chart are drawn without their ranks."""
_ON_FRONT, _BEHIND_FRONT = "on the front", "behind it"


class Panel(NamedTuple):
    """One drawing of a chart."""

    title: str
    """Empty where the chart has only one."""
    spec: Spec


def draw_heat_map(heat: HeatMap, objective: Objective) -> tuple[Panel, ...]:
    """One drawing for each value of the panel's key."""
    return tuple(
        Panel(f"{heat.panel_key}={value or '""'}" if heat.panel_key else "", _draw_heat_panel(heat, cells, objective))
        for value, cells in heat.panels
    )


def draw_front(points: Sequence[FrontPoint], kind: str, speed: Objective) -> Spec:
    """Speed against memory; the points that no other one beats in both are joined."""
    rows = [
        {
            "label": point.label,
            "memory": point.memory_gib,
            "speed": point.speed,
            "front": _ON_FRONT if point.on_front else _BEHIND_FRONT,
            "shown_memory": format_number(point.memory_gib),
            "shown_speed": format_number(point.speed),
            "rank": "" if point.rank is None else str(point.rank),
        }
        for point in points
    ]
    x = alt.X("memory:Q", title=f"peak {kind} memory, GiB", scale=alt.Scale(zero=False, padding=24))
    y = alt.Y("speed:Q", title=speed.title, scale=alt.Scale(zero=False, padding=24))
    on_front = alt.Chart(make_data([row for row in rows if row["front"] == _ON_FRONT])).encode(x=x, y=y)
    steps = on_front.mark_line(interpolate="step-after", color="var(--accent)", strokeWidth=1.5, opacity=0.6)
    kinds = (_ON_FRONT, _BEHIND_FRONT)
    shape = alt.Shape("front:N", scale=alt.Scale(domain=kinds, range=["diamond", "circle"]), title=None)
    color = _two_way("front", kinds, ("var(--accent)", "var(--muted)"))
    tooltip = make_tips(label="point", rank="rank", shown_memory="memory, GiB", shown_speed=speed.title)
    dots = alt.Chart(make_data(rows)).mark_point(filled=True, size=110, opacity=0.9)
    dots = dots.encode(x=x, y=y, shape=shape, color=color, tooltip=tooltip).add_params(make_zoom())
    ranks = alt.Chart(make_data(rows)).mark_text(align="left", dx=9, dy=-7).encode(x=x, y=y, text="rank:N")
    layers = [steps, dots, *([ranks] if len(rows) <= MAX_RANKS else [])]
    return make_spec(alt.layer(*layers), height=_PLOT_HEIGHT_PX)


def draw_losses(points: Sequence[LossPoint], ends: Sequence[LastFinite]) -> Spec:
    """Loss curves; a cross marks where a loss stops being finite."""
    labels = list(dict.fromkeys(point.label for point in points))
    widths = _choose_widths(labels)
    rows = [
        {
            **point._asdict(),
            "shown": "not finite" if point.loss is None else format_number(point.loss),
            "width": widths[point.label],
        }
        for point in points
    ]
    picked = alt.selection_point(fields=["label"], bind="legend")
    x = alt.X("step:Q", title="step", scale=alt.Scale(nice=False), axis=alt.Axis(tickMinStep=1, grid=False))
    y = alt.Y("loss:Q", title="loss", scale=alt.Scale(zero=False))
    base = alt.Chart(make_data(rows)).encode(
        x=x, y=y, opacity=alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.1))
    )
    lines = base.mark_line().encode(
        color=_curve_color(labels),
        strokeDash=_curve_dash(labels),
        strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
    )
    hover = base.mark_point(filled=True, size=60, opacity=0)
    hover = hover.encode(opacity=alt.value(0), tooltip=make_tips(label="point", step="step", shown="loss"))
    crosses = alt.Chart(make_data([end._asdict() for end in ends])).mark_point(
        shape="cross", angle=45, size=140, filled=True, color="var(--bad)"
    )
    crosses = crosses.encode(x=x, y=y, tooltip=make_tips(label="point", step="last finite step", loss="its loss"))
    layers = [lines.add_params(picked, make_zoom()), hover, *([crosses] if ends else [])]
    return make_spec(alt.layer(*layers), height=_PLOT_HEIGHT_PX)


def _draw_heat_panel(heat: HeatMap, cells: Sequence[HeatCell], objective: Objective) -> Spec:
    decimals = choose_decimals(cell.score for _, others in heat.panels for cell in others)
    rows = [
        {
            "row": cell.row or '""',
            "column": cell.column or '""',
            "level": "none" if cell.level is None else str(cell.level),
            "shown": cell.state.replace("_", " ") if cell.score is None else format_number(cell.score, decimals),
        }
        for cell in cells
    ]
    levels = [*map(str, range(NUM_LEVELS)), "none"]
    base = alt.Chart(make_data(rows)).encode(
        x=alt.X(
            "column:N",
            title=heat.column_key,
            scale=alt.Scale(domain=[value or '""' for value in heat.columns]),
            axis=alt.Axis(orient="top", labelAngle=0, grid=False),
        ),
        y=alt.Y(
            "row:N",
            title=heat.row_key,
            scale=alt.Scale(domain=[value or '""' for value in heat.rows]),
            axis=alt.Axis(grid=False),
        ),
        tooltip=make_tips(row=heat.row_key, column=heat.column_key, shown=objective.title),
    )
    fills = alt.Scale(domain=levels, range=[f"var(--h{level})" for level in levels])
    inks = alt.Scale(domain=levels, range=[f"var(--h{level}-ink)" for level in levels])
    tiles = base.mark_rect(cornerRadius=3, stroke="var(--paper)", strokeWidth=2)
    tiles = tiles.encode(fill=alt.Fill("level:N", scale=fills, legend=None))
    texts = base.mark_text(fontSize=13).encode(text="shown:N", color=alt.Color("level:N", scale=inks, legend=None))
    return make_spec(
        alt.layer(tiles, texts).resolve_scale(color="independent"), height=_CELL_HEIGHT_PX * len(heat.rows)
    )


def _two_way(field: str, names: Sequence[str], colors: Sequence[str]) -> alt.Color:
    legend = alt.Legend(orient="top", title=None)
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=list(colors)), title=None, legend=legend)


def _curve_legend() -> alt.Legend:
    return alt.Legend(
        orient="bottom", title=None, columns=alt.ExprRef("width > 640 ? 2 : 1"), symbolType="stroke", symbolSize=300
    )


def _curve_color(labels: Sequence[str]) -> alt.Color:
    colors = [f"var(--c{number % _NUM_COLORS + 1})" for number in range(len(labels))]
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), range=colors), title=None, legend=_curve_legend())


def _curve_dash(labels: Sequence[str]) -> alt.StrokeDash:
    dashes = [_DASHES[number % len(_DASHES)] if number else _SOLID for number in range(len(labels))]
    scale = alt.Scale(domain=list(labels), range=dashes)
    return alt.StrokeDash("label:N", scale=scale, title=None, legend=_curve_legend())


def _choose_widths(labels: Sequence[str]) -> dict[str, float]:
    """Label -> pixels."""
    step = (_WIDEST_PX - _NARROWEST_PX) / max(len(labels) - 1, 1)
    return {label: _WIDEST_PX - number * step for number, label in enumerate(labels)}
