"""Runs as rows: repeats together, ranked honestly."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from primus_hydra.objective import Objective, read_figure
from primus_hydra.report.model import FINISHED, Row, Run


def make_rows(runs: Sequence[Run], objective: Objective) -> tuple[Row, ...]:
    """One row for every point of every sweep, best first, then those without a score in their order."""
    points: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        points.setdefault((run.sweep, run.point), []).append(run)
    rows = [_make_row(sorted(repeats, key=lambda run: run.repeat), objective) for repeats in points.values()]
    return rank_rows(rows, objective)


def rank_rows(rows: Sequence[Row], objective: Objective) -> tuple[Row, ...]:
    """Rank what has a score; the others follow without a rank.

    Two points share a rank when the worse one's interval overlaps that of the rank's best: the difference is then
    within what the figure varies by itself. A point that is clearly worse gets its position, so a third one behind two
    that share rank 1 has rank 3.
    """
    sign = -1 if objective.maximize else 1
    scored = sorted((row for row in rows if row.score is not None), key=lambda row: sign * (row.score or 0.0))
    ranked: list[Row] = []
    leader: Row | None = None
    for position, row in enumerate(scored, start=1):
        if leader is None or not overlap(leader, row):
            leader = replace(row, rank=position)
            ranked.append(leader)
        else:
            ranked.append(replace(row, rank=leader.rank))
    return (*ranked, *(replace(row, rank=None) for row in rows if row.score is None))


def overlap(a: Row, b: Row) -> bool:
    """Whether two points cannot be told apart: their intervals have a value in common."""
    ends = (a.score_low, a.score_high, b.score_low, b.score_high)
    if any(end is None for end in ends):
        return a.score == b.score
    return ends[0] <= ends[3] and ends[2] <= ends[1]  # type: ignore[operator]


def is_scored(run: Run) -> bool:
    """Whether the run's figures may rank it: completed, or foreign without a sign of failure."""
    return run.state in FINISHED and run.failure is None


def _make_row(repeats: Sequence[Run], objective: Objective) -> Row:
    """A point from its repeats, in their order; figures come from those that may be ranked, else from the first."""
    completed = [run for run in repeats if is_scored(run)]
    shown, first = completed or repeats[:1], (completed or repeats)[0]
    scores = [score for run in completed if (score := read_figure(run.result, objective)) is not None]
    low, high = _interval(completed, scores, objective)
    step_times = [run.result.get("step_time_s") or {} for run in shown]
    measured = [count for run in shown if (count := run.result.get("num_steps_measured")) is not None]
    last_steps = [step for run in shown if (step := run.result.get("last_step")) is not None]
    platforms = dict.fromkeys(platform for run in shown if (platform := run.result.get("platform")))
    return Row(
        point=repeats[0].name,
        sweep=first.sweep,
        differs=first.differs,
        state=first.state,
        failure=first.failure,
        reason=_explain(repeats, objective),
        rank=None,
        score=statistics.median(scores) if scores else None,
        score_low=low,
        score_high=high,
        num_repeats=len(repeats),
        num_completed=len(completed),
        step_time_s=_median([times.get("median") for times in step_times]),
        step_time_p25_s=_median([times.get("p25") for times in step_times]),
        step_time_p75_s=_median([times.get("p75") for times in step_times]),
        num_steps_measured=sum(measured) if measured else None,
        last_step=min(last_steps, default=None),
        tokens_per_second_per_device=_figure(shown, "tokens_per_second_per_device"),
        tflops_per_second_per_device=_figure(shown, "tflops_per_second_per_device"),
        final_loss=_figure(shown, "final_loss"),
        peak_device_memory_gib=_figure(shown, "peak_device_memory_gib"),
        peak_host_memory_gib=_figure(shown, "peak_host_memory_gib"),
        compile_time_s=_figure(shown, "compile_time_s"),
        platform=", ".join(platforms) or None,
    )


def _interval(
    completed: Sequence[Run], scores: Sequence[float], objective: Objective
) -> tuple[float | None, float | None]:
    """Ends of the interval that decides about ties.

    Of several repeats: their lowest and highest value. Of a single run whose figure follows the step time: the figure
    at both ends of the middle half of its step times. Otherwise the one value that there is.
    """
    if not scores:
        return None, None
    if len(scores) > 1 or not objective.step_time_power:
        return min(scores), max(scores)
    (score,) = scores
    run = next(run for run in completed if read_figure(run.result, objective) is not None)
    times = run.result["step_time_s"]
    ends = [
        score * (times[end] / times["median"]) ** objective.step_time_power for end in ("p25", "p75") if times.get(end)
    ]
    return min([score, *ends]), max([score, *ends])


def _explain(repeats: Sequence[Run], objective: Objective) -> str:
    """Why there is no score, or what became of the repeats that add nothing to it."""
    texts = []
    for run in repeats:
        if is_scored(run):
            text = _explain_no_figure(run, objective) if read_figure(run.result, objective) is None else ""
        elif len(repeats) == 1:
            text = run.reason
        else:
            text = f"{run.state}{f' ({run.failure})' if run.failure else ''}: {run.reason}".rstrip(": ")
        if text:
            texts.append(f"repeat {run.repeat}: {text}" if len(repeats) > 1 else text)
    return " ".join(texts)


def _explain_no_figure(run: Run, objective: Objective) -> str:
    result = run.result
    if objective.step_time_power and result.get("too_few_steps"):
        left, warmup = result.get("num_steps_measured") or 0, result.get("warmup_steps") or 0
        return f"Too few steps for a figure: {left} after {warmup} for the warm-up; 3 are needed."
    return f"Its {objective.title.partition(',')[0]} is not known."


def _figure(runs: Sequence[Run], name: str) -> float | None:
    return _median([run.result.get(name) for run in runs])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
