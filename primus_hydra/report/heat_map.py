"""The heat map's data: the objective over the values of two keys."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from primus_hydra.objective import Objective
from primus_hydra.report.labels import UNKNOWN
from primus_hydra.report.points import Point, order_values

MAX_PANELS = 6
MAX_VALUES = 12
"""A key with more values makes no readable axis."""
NUM_LEVELS = 7
"""Shades."""
_PREFERRED = ("remat_policy", "quantization", "attention")
"""Rows, columns and panels where these keys vary."""


class HeatCell(NamedTuple):
    """The best point for one pair of values."""

    row: str
    column: str
    score: float | None
    level: int | None
    """0 for the worst score of the map to NUM_LEVELS - 1 for the best."""
    state: str
    """Why there is no score; `completed` where there is one."""


class HeatMap(NamedTuple):
    """The objective over the values of two keys; a third one makes panels."""

    row_key: str
    column_key: str
    panel_key: str | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    panels: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    """Value of the panel's key -> its cells; one panel with an empty value without such a key."""
    num_panels: int
    """Of all values; more than MAX_PANELS are not shown."""


def make_heat_map(points: Sequence[Point], objective: Objective) -> HeatMap | None:
    """The objective over remat policy and quantization, a panel for each attention; or over the keys that vary most.

    A cell shows its best point, whatever the other keys are; points of unknown configuration are left out. None where
    fewer than two keys vary, or no point has a score.
    """
    points = [point for point in points if UNKNOWN not in point.values.values()]
    keys = _choose_keys(points)
    scores = [point.row.score for point in points if point.row.score is not None]
    if len(keys) < 2 or not scores:
        return None
    row_key, column_key, panel_key = keys[0], keys[1], keys[2] if len(keys) > 2 else None
    rows, columns = order_values(points, row_key), order_values(points, column_key)
    shade = _make_shade(min(scores), max(scores), objective.maximize)
    titles = order_values(points, panel_key) if panel_key else ("",)
    panels = []
    for title in titles[:MAX_PANELS]:
        inside = [point for point in points if panel_key is None or point.values[panel_key] == title]
        pairs = {(point.values[row_key], point.values[column_key]): point for point in reversed(inside)}
        cells = [
            _make_cell(row, column, point, shade)
            for row in rows
            for column in columns
            if (point := pairs.get((row, column))) is not None
        ]
        panels.append((title, tuple(cells)))
    return HeatMap(row_key, column_key, panel_key, rows, columns, tuple(panels), len(titles))


def is_mostly_empty(heat: HeatMap) -> bool:
    """Whether less than half of the cells of the shown panels have a point."""
    num_filled = sum(len(cells) for _, cells in heat.panels)
    return 2 * num_filled < len(heat.rows) * len(heat.columns) * len(heat.panels)


def _choose_keys(points: Sequence[Point]) -> list[str]:
    if not points:
        return []
    count = {key: len(order_values(points, key)) for key in points[0].values}
    readable = [key for key, number in count.items() if 1 < number <= MAX_VALUES]
    wanted = [key for key in _PREFERRED if key in readable] if {*_PREFERRED[:2]} <= {*readable} else []
    others = sorted((key for key in readable if key not in wanted), key=lambda key: -count[key])
    return [*wanted, *others][:3]


def _make_shade(low: float, high: float, maximize: bool) -> Callable[[float], int]:
    def shade(score: float) -> int:
        share = (score - low) / (high - low) if high > low else 1.0
        return round((share if maximize or high == low else 1 - share) * (NUM_LEVELS - 1))

    return shade


def _make_cell(row: str, column: str, point: Point, shade: Callable[[float], int]) -> HeatCell:
    score = point.row.score
    return HeatCell(row, column, score, None if score is None else shade(score), point.row.state)
