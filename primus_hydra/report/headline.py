"""What a report says first: who won, by how much, and what that rests on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from primus_hydra.objective import Objective
from primus_hydra.report.digits import format_count, format_number
from primus_hydra.report.labels import show_overrides
from primus_hydra.report.model import PENDING, Report
from primus_hydra.report.points import Point
from primus_hydra.report.ranking import describe_basis

_MAX_TIES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """The first lines of the page."""

    title: str
    """The winner, or why there is none."""
    differs: str
    """The winner's overrides; empty without a single winner, and so are figure, unit and command."""
    figure: str
    """The winner's objective."""
    unit: str
    sentences: tuple[str, ...]
    ties: tuple[str, ...]
    """Points that share the first place; empty where one point has it alone."""
    basis: str
    """What the ranking rests on."""
    command: str
    """Repeats the winner."""


def write_headline(report: Report, points: Sequence[Point]) -> Headline:
    """The first lines of a report; `points` are its rows."""
    objective = report.objective
    scored = [point for point in points if point.row.rank is not None]
    first = [point for point in scored if point.row.rank == 1]
    winner = first[0] if len(first) == 1 else None
    shown = [point.label for point in first[:_MAX_TIES]]
    more = [f"and {len(first) - _MAX_TIES} more"] if len(first) > _MAX_TIES else []
    return Headline(
        title=_write_title(first),
        differs=show_overrides(winner.row.differs) if winner else "",
        figure=format_number(winner.row.score) if winner and winner.row.score is not None else "",
        unit=objective.title if winner else "",
        sentences=tuple(filter(None, [_describe_lead(scored, objective), _count_states(points)])),
        ties=tuple(shown + more) if len(first) > 1 else (),
        basis=describe_basis(report),
        command=winner.runs[0].command if winner and winner.runs else "",
    )


def _write_title(first: Sequence[Point]) -> str:
    if not first:
        return "No point has a score"
    return first[0].label if len(first) == 1 else f"{len(first)} points share the first place"


def _describe_lead(scored: Sequence[Point], objective: Objective) -> str:
    first = [point for point in scored if point.row.rank == 1]
    others = [point for point in scored if point.row.rank != 1]
    if len(first) > 1:
        return "Their intervals overlap, so these figures cannot tell which is the best."
    if not others or not first:
        return ""
    best, second = first[0].row.score, others[0].row.score
    if not best or not second:
        return f"The next is {others[0].label}."
    share = best / second - 1 if objective.maximize else 1 - best / second
    amount = "more" if objective.maximize else "less"
    return f"That is {abs(share):.1%} {amount} than the next, {others[0].label}."


def _count_states(points: Sequence[Point]) -> str:
    count = Counter(point.row.state for point in points)
    states = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in count.most_common())
    pending = sum(count[state] for state in PENDING)
    more = f" The ranking is not final: {pending} {'is' if pending == 1 else 'are'} still to come." if pending else ""
    return f"{format_count(len(points), 'point')}: {states}.{more}"
