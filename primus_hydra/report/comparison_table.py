"""A comparison in words and tables."""

from collections.abc import Sequence

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from primus_hydra.objective import OBJECTIVES, Objective, format_figure
from primus_hydra.report.comparison import Comparison, is_configuration_known
from primus_hydra.report.model import FOREIGN, Row, Run
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.rows import is_scored, overlap

_UNKNOWN = "-"


def describe_verdict(comparison: Comparison) -> str:
    """Which of both is the better by the objective, as far as their figures can tell."""
    (a, b), objective = comparison.rows, comparison.objective
    unscored = [letter for letter, row in zip("AB", (a, b), strict=True) if row.score is None]
    if a.score is None or b.score is None:
        have = "has" if len(unscored) == 1 else "have"
        return f"No verdict: {' and '.join(unscored)} {have} no score."
    if overlap(a, b):
        why = "intervals overlap" if a.score != b.score else "figures are equal"
        return f"A and B cannot be told apart by {objective.title} ({why})."
    is_single = a.num_completed == b.num_completed == 1
    amount = f"{b.score / a.score:.2f}x" if a.score else format_figure(b.score, objective)
    if is_single and not objective.step_time_power:
        return f"B's {objective.title} is {amount} that of A. One run each: nothing tells whether that is chance."
    drift = " One run each: drift between runs is not covered." if is_single else ""
    return f"B is clearly {_name_change(a.score, b.score, objective)} ({objective.title}): {amount} of A.{drift}"


def _name_change(a: float, b: float, objective: Objective) -> str:
    if not objective.step_time_power:
        return "higher" if b > a else "lower"
    return "slower" if (b > a) == (objective.step_time_power > 0) else "faster"


def comparison_table(comparison: Comparison) -> RenderableType:
    """Figures with their ratio, then what differs, then what is to be known about the figures."""
    figures = Table(title="What came of it", title_justify="left")
    for title in ("figure", "A", "B", "B / A"):
        figures.add_column(title, justify="left" if title == "figure" else "right", overflow="fold")
    for figure in comparison.figures:
        objective = OBJECTIVES[figure.name]
        shown = [_UNKNOWN if value is None else format_figure(value, objective) for value in (figure.a, figure.b)]
        figures.add_row(objective.title, *shown, _UNKNOWN if figure.ratio is None else f"{figure.ratio:.3f}")
    for name, *pair in _list_foundations(comparison):
        figures.add_row(name, *pair, "")
    differences = Table(title="What differs", title_justify="left")
    for title in ("kind", "name", "A", "B"):
        differences.add_column(title, overflow="fold")
    for kind, name, values in comparison.differences:
        differences.add_row(*(Text(make_plain(text) or '""') for text in (kind, name, *values)))
    names = [Text(make_plain(f"{letter}: {_describe(run)}")) for letter, run in zip("AB", comparison.runs, strict=True)]
    unknown = _describe_unknown(comparison.runs)
    same = [] if unknown else [Text("No key, variable, flag or version differs.")]
    told = [differences] if comparison.differences else same
    return Stack(*names, figures, Text(describe_verdict(comparison)), *map(Text, unknown), *told)


def _list_foundations(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What the figures rest on, a line each."""
    a, b = comparison.rows
    lines = [("steps measured", _show_count(a.num_steps_measured), _show_count(b.num_steps_measured))]
    if max(a.num_repeats, b.num_repeats) > 1:
        lines.append(("repeats", str(a.num_repeats), str(b.num_repeats)))
    if any(row.score_low != row.score_high for row in (a, b)):
        objective = comparison.objective
        lines.append((f"interval of {objective.title}", _show_interval(a, objective), _show_interval(b, objective)))
    return lines


def _show_count(count: int | None) -> str:
    return _UNKNOWN if count is None else str(count)


def _show_interval(row: Row, objective: Objective) -> str:
    if row.score_low is None or row.score_high is None:
        return _UNKNOWN
    return f"{format_figure(row.score_low, objective)} to {format_figure(row.score_high, objective)}"


def _describe_unknown(runs: Sequence[Run]) -> list[str]:
    """What is not known about the configurations of foreign runs."""
    sentences = []
    for letter, run in zip("AB", runs, strict=True):
        if not is_configuration_known(run):
            sentences.append(
                f"The configuration of {letter} is not known (it was run without primus_hydra), so nothing can be said "
                "about the keys, variables, flags and versions that differ."
            )
        elif run.state == FOREIGN:
            sentences.append(f"{letter} was run without primus_hydra: its configuration is what was planned.")
    return sentences


def _describe(run: Run) -> str:
    state = f"{run.state} ({run.failure})" if run.failure else run.state
    caveat = "" if is_scored(run) else ": its figures are no score"
    return f"{run.folder}, {state}{caveat}"
