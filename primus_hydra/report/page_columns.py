"""The figures of the page's table: a column for each, with one number of decimals and the exact value to sort by."""

from collections.abc import Sequence
from typing import NamedTuple

from primus_hydra.objective import OBJECTIVES, Objective
from primus_hydra.report.digits import choose_decimals, format_number, format_range
from primus_hydra.report.model import Row
from primus_hydra.report.points import Point

NUM_FIRST = 1
"""Figures that stand right behind the point's name, before its state: a narrow screen shows them."""


class Cell(NamedTuple):
    """One cell."""

    text: str
    sort: str
    """What it is sorted by; empty where unknown."""
    small: str = ""
    is_number: bool = False
    is_point: bool = False
    mark: str = ""
    """Of a state: `good`, `foreign`, `bad`, `left-out` or `pending`."""


class _Value(NamedTuple):
    """What one figure of one point is; `low` and `high` are its interval."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


class Figures(NamedTuple):
    """One figure of every point."""

    title: str
    maximize: bool
    values: tuple[_Value | None, ...]
    """One for each point."""
    is_count: bool = False


def list_figure_columns(points: Sequence[Point], objective: Objective) -> list[Figures]:
    """The objective, its share of the best, the step time, then the rest; only what is known of any point."""
    rows = [point.row for point in points]
    others = [each for each in OBJECTIVES.values() if each.name not in (objective.name, "step_time_s")]
    step_time = OBJECTIVES["step_time_s"]
    figures = [
        Figures(objective.title, objective.maximize, tuple(_read_score(row) for row in rows)),
        Figures("vs best, %", objective.maximize, _compare_to_best(rows)),
        *(
            [Figures(step_time.title, False, tuple(map(_read_step_time, rows)))]
            if objective.name != step_time.name
            else []
        ),
        *(Figures(each.title, each.maximize, tuple(_read(row, each.name) for row in rows)) for each in others),
        Figures("MFU, % of the dense bf16 peak", True, tuple(map(_read_mfu, points))),
        Figures("steps", True, tuple(map(_read_steps, rows)), is_count=True),
    ]
    return [figure for figure in figures if any(figure.values)]


def _read(row: Row, name: str) -> _Value | None:
    value = getattr(row, name)
    return None if value is None else _Value(value)


def _read_score(row: Row) -> _Value | None:
    return None if row.score is None else _Value(row.score, row.score_low, row.score_high)


def _compare_to_best(rows: Sequence[Row]) -> tuple[_Value | None, ...]:
    """Scores in percent of the best one, where several points have one and a share of it means something."""
    scores = [row.score for row in rows if row.score is not None]
    best = next((row.score for row in rows if row.rank == 1 and row.score is not None), 0.0)
    if len(scores) < 2 or best <= 0:
        return (None,) * len(rows)
    return tuple(None if row.score is None else _Value(100 * row.score / best) for row in rows)


def _read_mfu(point: Point) -> _Value | None:
    speed, peaks = point.row.tflops_per_second_per_device, {run.peak_bf16_tflops for run in point.runs}
    peak = peaks.pop() if len(peaks) == 1 else None
    return None if speed is None or not peak else _Value(100 * speed / peak)


def _read_step_time(row: Row) -> _Value | None:
    return None if row.step_time_s is None else _Value(row.step_time_s, row.step_time_p25_s, row.step_time_p75_s)


def _read_steps(row: Row) -> _Value | None:
    if row.num_steps_measured is None:
        return None
    note = f"{row.num_completed} of {row.num_repeats} runs" if row.num_repeats > 1 else ""
    return _Value(row.num_steps_measured, note=note)


def make_cells(figure: Figures) -> list[Cell]:
    """A column, with one number of decimals."""
    decimals = 0 if figure.is_count else choose_decimals(each.value for each in figure.values if each)
    return [_make_cell(each, decimals) for each in figure.values]


def _make_cell(figure: _Value | None, decimals: int) -> Cell:
    if figure is None:
        return Cell("", "", is_number=True)
    value, low, high, note = figure
    interval = "" if low is None or high is None or low == high else format_range(low, high, decimals)
    return Cell(format_number(value, decimals), repr(value), small=note or interval, is_number=True)
