"""`python -m primus_hydra.compare A B`: what differs between two runs, beside what came of it.

A and B are run folders, or sweep folders, which stand for their best run. Exit codes: 0 compared, 2 they cannot be.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console, RenderableType
from rich.console import Group as Stack
from rich.table import Table
from rich.text import Text

from primus_hydra.atomic_files import format_json
from primus_hydra.objective import OBJECTIVES, Objective, read_figure
from primus_hydra.progress import Voice
from primus_hydra.report.differences import Difference, list_differences
from primus_hydra.report.model import Run
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.points import Point, read_points
from primus_hydra.report.ranking import format_figure
from primus_hydra.report.read import read_report
from primus_hydra.report.rows import is_scored
from primus_hydra.tell import tell

_EXIT_USAGE = 2
_UNKNOWN = "-"


class NothingToCompareError(Exception):
    """A folder that stands for no run; the message is a full sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure of both runs."""

    name: str
    a: float | None
    b: float | None
    ratio: float | None
    """b / a; None where either is unknown or a is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two runs side by side."""

    runs: tuple[Run, Run]
    figures: tuple[Figure, ...]
    """Those that either run has."""
    differences: tuple[Difference, ...]
    """Keys, environment, XLA flags, versions and machine, of the names that do not agree."""


def compare(a: Path, b: Path) -> Comparison:
    """Compare two run folders; a sweep folder stands for its best run.

    Raises:
        NothingToCompareError: a folder holds no run, or several and none with a score.
    """
    points = (_choose_point(a), _choose_point(b))
    first, second = (point.runs[0] for point in points)
    figures = (_make_figure(objective, first, second) for objective in OBJECTIVES.values())
    return Comparison(
        runs=(first, second),
        figures=tuple(figure for figure in figures if (figure.a, figure.b) != (None, None)),
        differences=list_differences(points),
    )


def _choose_point(folder: Path) -> Point:
    """The folder's only run, or the first scored run of its best point."""
    report = read_report([folder])
    if not report.runs:
        raise NothingToCompareError(" ".join(report.problems))
    best = read_points(report)[0]
    if len(report.runs) == 1:
        return best
    scored = [run for run in best.runs if is_scored(run)]
    if best.row.rank is None or not scored:
        raise NothingToCompareError(
            f"{folder} holds {len(report.runs)} runs and none has a score. Name one of its run folders."
        )
    return replace(best, runs=(scored[0],))


def _make_figure(objective: Objective, a: Run, b: Run) -> Figure:
    first, second = (read_figure(run.result, objective) for run in (a, b))
    ratio = second / first if first and second is not None else None
    return Figure(name=objective.name, a=first, b=second, ratio=ratio)


def comparison_table(comparison: Comparison) -> RenderableType:
    """Figures with their ratio, then what differs, then what is to be known about the figures."""
    figures = Table(title="What came of it", title_justify="left")
    for title in ("figure", "A", "B", "B / A"):
        figures.add_column(title, justify="left" if title == "figure" else "right", no_wrap=title != "figure")
    for figure in comparison.figures:
        objective = OBJECTIVES[figure.name]
        shown = [_UNKNOWN if value is None else format_figure(value, objective) for value in (figure.a, figure.b)]
        figures.add_row(objective.title, *shown, _UNKNOWN if figure.ratio is None else f"{figure.ratio:.3f}")
    differences = Table(title="What differs", title_justify="left")
    for title in ("kind", "name", "A", "B"):
        differences.add_column(title, overflow="fold")
    for kind, name, values in comparison.differences:
        differences.add_row(*(Text(make_plain(text) or '""') for text in (kind, name, *values)))
    names = [Text(make_plain(f"{letter}: {_describe(run)}")) for letter, run in zip("AB", comparison.runs, strict=True)]
    nothing = Text("No key, variable, flag or version differs.")
    return Stack(*names, figures, differences if comparison.differences else nothing)


def _describe(run: Run) -> str:
    state = f"{run.state} ({run.failure})" if run.failure else run.state
    caveat = "" if is_scored(run) else ": its figures are no score"
    return f"{run.folder}, {state}{caveat}"


def _make_json(comparison: Comparison) -> str:
    return format_json(
        {
            "schema": 1,
            "runs": [
                {"folder": str(run.folder), "name": run.name, "state": run.state, "failure": run.failure}
                for run in comparison.runs
            ],
            "figures": [asdict(figure) for figure in comparison.figures],
            "differences": [
                {"kind": kind, "name": name, "a": a, "b": b} for kind, name, (a, b) in comparison.differences
            ],
        }
    )


def main(arguments: Sequence[str]) -> int:
    """Print the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m primus_hydra.compare",
        description="What differs between two runs, and what came of it. A sweep folder stands for its best run.",
    )
    parser.add_argument("a", type=Path, metavar="A", help="a run folder or a sweep folder")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    try:
        comparison = compare(options.a, options.b)
    except NothingToCompareError as error:
        tell(make_plain(str(error)), file=sys.stderr)
        return _EXIT_USAGE
    voice = Voice(Console())
    if options.json:
        voice.say(_make_json(comparison).rstrip("\n"))
    else:
        with voice.attempt():
            voice.console.print(comparison_table(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
