"""What a ranking rests on, in words."""

from collections.abc import Iterable, Sequence

from primus_hydra.objective import Objective
from primus_hydra.report.digits import format_count
from primus_hydra.report.model import FOREIGN, Report, Row
from primus_hydra.report.plain_text import make_plain

_MAX_NAMED = 3
_NOT_OF_EQUAL_LENGTH = ("final_loss",)


def describe_ranking(report: Report) -> str:
    """Who leads, by what, what that figure was taken from, what counts as a tie, and what the ranking cannot know."""
    ranked = [row for row in report.rows if row.rank is not None]
    count = format_count(len(report.rows), "point")
    if len(report.runs) != len(report.rows):
        count += f" in {format_count(len(report.runs), 'run')}"
    if not ranked:
        return f"{count}, none with a score."
    leaders = [row for row in ranked if row.rank == 1]
    return f"{count}; {_describe_leaders(leaders)} {describe_basis(report)}"


def describe_basis(report: Report) -> str:
    """What the ranking was taken from, what counts as a tie, and what it cannot know; empty without a score."""
    ranked = [row for row in report.rows if row.rank is not None]
    return " ".join([_describe_basis(report, ranked), *_describe_caveats(report, ranked)]) if ranked else ""


def _describe_leaders(leaders: Sequence[Row]) -> str:
    if len(leaders) == 1:
        return f"best: {make_plain(leaders[0].differs)}."
    names = ", ".join(make_plain(row.differs) for row in leaders[:_MAX_NAMED])
    others = f" and {len(leaders) - _MAX_NAMED} more" if len(leaders) > _MAX_NAMED else ""
    return f"{len(leaders)} share the first rank and cannot be told apart: {names}{others}."


def _describe_basis(report: Report, ranked: Sequence[Row]) -> str:
    objective = report.objective
    basis = f"Ranked by {objective.title} ({'most' if objective.maximize else 'least'} first)"
    if objective.step_time_power:
        steps = [row.num_steps_measured for row in ranked if row.num_steps_measured is not None]
        warmups = {run.result.get("warmup_steps") for run in report.runs} - {None}
        basis += f" from the median of {_span(steps, 'step')}" if steps else " from the median step"
        basis += f" after {_span(warmups, 'warm-up step')}" if warmups else " after the warm-up"
    repeated = [row.num_completed for row in ranked]
    if max(repeated) > 1:
        basis += f", the median over {_span(repeated, 'repeat')}"
    return f"{basis}. {_describe_ties(objective, repeated)}"


def _describe_ties(objective: Objective, repeated: Sequence[int]) -> str:
    """What makes two points share a rank."""
    ranges = []
    if objective.step_time_power and min(repeated) == 1:
        ranges.append("the middle halves of the steps" + (" of a single run" if max(repeated) > 1 else ""))
    if max(repeated) > 1:
        ranges.append("the values of the repeats, lowest to highest")
    return f"A tie: overlap of {' or '.join(ranges)}." if ranges else "A tie: equal values."


def _describe_caveats(report: Report, ranked: Sequence[Row]) -> list[str]:
    caveats = []
    platforms = dict.fromkeys(row.platform or "unknown" for row in ranked)
    if len(platforms) > 1:
        caveats.append(f"They ran on different platforms ({'; '.join(map(make_plain, platforms))}).")
    lengths = {row.last_step for row in ranked if row.last_step is not None}
    if report.objective.name in _NOT_OF_EQUAL_LENGTH and len(lengths) > 1:
        caveats.append(f"Their last steps differ ({min(lengths)} to {max(lengths)}), so the losses do not compare.")
    if len(ranked) > 1 and all(row.num_completed == 1 for row in ranked):
        caveats.append("One run each: drift between runs is not covered; sweep.repeats=3 shows it.")
    if any(row.state == FOREIGN for row in ranked):
        caveats.append(
            "Foreign runs were made without primus_hydra: they are ranked by the steps in their files, and nothing "
            "proves that they ended well or ran as they are called."
        )
    return caveats


def _span(counts: Iterable[int | None], noun: str) -> str:
    known = [count for count in counts if count is not None]
    least, most = min(known), max(known)
    return format_count(most, noun) if least == most else f"{least} to {most} {noun}s"
