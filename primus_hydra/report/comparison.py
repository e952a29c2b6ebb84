"""Two runs side by side: their figures, what those rest on, and what differs."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from primus_hydra.objective import OBJECTIVES, Objective, read_figure
from primus_hydra.report.differences import Difference, list_differences
from primus_hydra.report.model import FOREIGN, Row, Run
from primus_hydra.report.points import Point, read_points
from primus_hydra.report.read import read_report
from primus_hydra.report.rows import is_scored, make_rows


class NothingToCompareError(Exception):
    """A folder that stands for no run; the message is a full sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure of both runs; of several repeats the median."""

    name: str
    a: float | None
    b: float | None
    ratio: float | None
    """b / a; None where either is unknown or a is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two runs side by side."""

    runs: tuple[Run, Run]
    """Of several repeats the first with a score."""
    rows: tuple[Row, Row]
    """What their figures rest on: repeats, steps, and the interval of the objective."""
    objective: Objective
    """What the verdict is about: the objective of A's sweep."""
    figures: tuple[Figure, ...]
    """Those that either run has."""
    differences: tuple[Difference, ...]
    """Keys, environment, XLA flags, versions and machine, of the names that do not agree. Beside a run whose
    configuration is not known only the machine's."""


def compare(a: Path, b: Path) -> Comparison:
    """Compare two run folders; a sweep folder stands for its best run.

    Raises:
        NothingToCompareError: a folder holds no run, or several and none with a score.
    """
    (first, objective), (second, _) = _choose_point(a), _choose_point(b)
    figures = (_make_figure(each, first.runs, second.runs) for each in OBJECTIVES.values())
    shown = tuple(replace(point, runs=point.runs[:1]) for point in (first, second))
    differences = list_differences(shown)
    if not all(is_configuration_known(point.runs[0]) for point in shown):
        differences = tuple(each for each in differences if each.kind == "machine" and each.name != "trainer")
    return Comparison(
        runs=(first.runs[0], second.runs[0]),
        rows=(_make_row(first.runs, objective), _make_row(second.runs, objective)),
        objective=objective,
        figures=tuple(figure for figure in figures if (figure.a, figure.b) != (None, None)),
        differences=differences,
    )


def _choose_point(folder: Path) -> tuple[Point, Objective]:
    """The folder's only run, or the scored runs of its best point; and what ranked them."""
    report = read_report([folder])
    if not report.runs:
        raise NothingToCompareError(" ".join(report.problems))
    best = read_points(report)[0]
    if len(report.runs) == 1:
        return best, report.objective
    scored = tuple(run for run in best.runs if is_scored(run))
    if best.row.rank is None or not scored:
        raise NothingToCompareError(
            f"{folder} holds {len(report.runs)} runs and none has a score. Name one of its run folders."
        )
    return replace(best, runs=scored), report.objective


def _make_row(repeats: Sequence[Run], objective: Objective) -> Row:
    (row,) = make_rows(repeats, objective)
    return row


def _make_figure(objective: Objective, a: Sequence[Run], b: Sequence[Run]) -> Figure:
    first, second = (_read_median(runs, objective) for runs in (a, b))
    ratio = second / first if first and second is not None else None
    return Figure(name=objective.name, a=first, b=second, ratio=ratio)


def _read_median(runs: Sequence[Run], objective: Objective) -> float | None:
    values = [value for run in runs if (value := read_figure(run.result, objective)) is not None]
    return statistics.median(values) if values else None


def is_configuration_known(run: Run) -> bool:
    """Whether the run's record tells what it was composed of."""
    return bool(run.composed) or run.state != FOREIGN
