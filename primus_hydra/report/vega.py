"""What every chart has in common: the look, the data, the tooltips, the size.

Colours are the page's CSS variables, so one drawing serves the light page, the dark page and the printer.
Fields have names of ours; texts of the user are values only, never names or expressions.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt

Spec = dict[str, Any]
"""A Vega-Lite specification."""

CONFIG: Spec = {
    "aria": False,  # thousands of labels; the page's tables say the same
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 6,
        "gridColor": "var(--line)",
        "domain": False,
        "ticks": False,
        "tickCount": 6,
    },
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--muted)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 0,
        "symbolStrokeColor": "var(--ink)",
        "symbolStrokeWidth": 2,
    },
    "text": {"color": "var(--ink)", "fontSize": 12},
}
"""Vega-Lite's `config` for every chart."""


def make_data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Rows of plain values, inside the specification."""
    return alt.InlineData(values=[dict(row) for row in rows])


def make_tips(**titles: str) -> list[alt.Tooltip]:
    """Field -> its title; figures are texts already."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def make_zoom() -> alt.Parameter:
    """Only with Shift: scrolling the page over a chart must not zoom it."""
    return alt.selection_interval(bind="scales", zoom="wheel![event.shiftKey]")


def make_spec(chart: alt.LayerChart | alt.FacetChart, height: int) -> Spec:
    """As wide as the page allows; the plot is `height` px high, and legends come on top of that."""
    autosize = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec: Spec = chart.properties(width="container", height=height, autosize=autosize).to_dict()
    del spec["config"]
    return spec
