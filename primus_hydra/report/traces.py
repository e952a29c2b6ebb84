"""Step by step data of a few points: loss curves and step times."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from primus_hydra.report.model import Run, Step
from primus_hydra.report.points import Point
from primus_hydra.report.rows import is_scored

MAX_CURVES = 12
MAX_DIVERGED = 4
"""Points whose loss was not finite that are shown besides the best ones."""
MAX_CURVE_POINTS = 300
MAX_OUTLIERS = 20
FAR_OFF = 3.0
"""A step is shown by itself from this many widths of the middle half outside of it."""
MINIMUM_STEPS = 3
"""Fewer measured steps have no distribution."""


class Trace(NamedTuple):
    """The steps of one run, in order."""

    steps: Sequence[Step]
    warmup_steps: int = 0
    """How many of the first steps were not measured."""
    repeat: int = 1
    earlier: Sequence[Step] = ()
    """Steps of the attempts that this one went on from; only the loss curve has them."""


Traces = Mapping[str, Sequence[Trace]]
"""Label of a point -> its completed repeats, or the one run that tells most; the first one has the loss curve."""


class LossPoint(NamedTuple):
    """One point of a loss curve."""

    label: str
    step: int
    loss: float | None
    """None where it was not finite: the curve has a gap."""


class LastFinite(NamedTuple):
    """Where a curve ends in a loss that is not finite."""

    label: str
    step: int
    """The last step with a finite loss."""
    loss: float


class StepTimes(NamedTuple):
    """How the measured step times of a point are spread, seconds; the steps of its repeats together."""

    label: str
    p5_s: float
    p25_s: float
    median_s: float
    """Over repeats the median of their medians, as in the table."""
    p75_s: float
    p95_s: float
    num_steps: int


class StepMark(NamedTuple):
    """One step that is shown by itself."""

    label: str
    step: int
    step_time_s: float
    is_warmup: bool
    """Not measured; a mark that is no warm-up lies far off the measured steps."""
    repeat: int = 1


def choose_traced(points: Sequence[Point]) -> tuple[tuple[Point, tuple[Run, ...]], ...]:
    """The best points and some that diverged or were stopped early, with their completed repeats or their first run."""
    best = [point for point in points if point.row.rank is not None][:MAX_CURVES]
    diverged = [point for point in points if point.row.failure == "not_finite_loss"][:MAX_DIVERGED]
    stopped = [point for point in points if point.row.state == "skipped"][:MAX_DIVERGED]
    return tuple((point, _choose_runs(point.runs)) for point in [*best, *diverged, *stopped] if point.runs)


def list_losses(traces: Traces) -> tuple[LossPoint, ...]:
    """Every curve with at most MAX_CURVE_POINTS points; peaks and gaps survive."""
    return tuple(
        LossPoint(label, step.step, step.loss)
        for label, runs in traces.items()
        for step in thin_out_steps([*runs[0].earlier, *runs[0].steps])
    )


def list_last_finite(traces: Traces) -> tuple[LastFinite, ...]:
    """The last finite loss of every curve that goes on without one."""
    found = []
    for label, runs in traces.items():
        steps = runs[0].steps
        finite = [step for step in steps if step.loss is not None]
        if finite and steps[-1].loss is None:
            assert finite[-1].loss is not None
            found.append(LastFinite(label, finite[-1].step, finite[-1].loss))
    return tuple(found)


def thin_out_steps(steps: Sequence[Step], limit: int = MAX_CURVE_POINTS) -> tuple[Step, ...]:
    """At most `limit` steps: of each stretch the first, the least, the greatest and the first loss that is none."""
    if len(steps) <= limit:
        return tuple(steps)
    num_stretches = limit // 4
    kept: dict[int, Step] = {}
    for number in range(num_stretches):
        start = number * len(steps) // num_stretches
        stretch = range(start, (number + 1) * len(steps) // num_stretches)
        finite = [index for index in stretch if steps[index].loss is not None]
        gaps = [index for index in stretch if steps[index].loss is None]
        ends = [min(finite, key=lambda index: steps[index].loss or 0.0)] if finite else []
        ends += [max(finite, key=lambda index: steps[index].loss or 0.0)] if finite else []
        kept |= {index: steps[index] for index in [start, *ends, *gaps[:1]]}
    kept[len(steps) - 1] = steps[-1]
    return tuple(kept[index] for index in sorted(kept))[-limit:]


def list_step_times(traces: Traces) -> tuple[StepTimes, ...]:
    """Quantiles of the steps after the warm-up, which is dropped by position."""
    found = []
    for label, runs in traces.items():
        times = [times for run in runs if (times := _known_times(run.steps[run.warmup_steps :]))]
        pooled = [seconds for each in times for seconds in each]
        if len(pooled) >= MINIMUM_STEPS:
            cuts = statistics.quantiles(pooled, n=20, method="inclusive")
            median = statistics.median(statistics.median(each) for each in times)
            found.append(StepTimes(label, cuts[0], cuts[4], median, cuts[14], cuts[18], len(pooled)))
    return tuple(found)


def list_step_marks(traces: Traces) -> tuple[StepMark, ...]:
    """Warm-up steps, and of each point at most MAX_OUTLIERS steps that lie farthest off the others."""
    marks: list[StepMark] = []
    for times in list_step_times(traces):
        runs = traces[times.label]
        for run in runs:
            marks += _mark(times.label, run, run.steps[: run.warmup_steps], is_warmup=True)
        measured = [mark for run in runs for mark in _mark(times.label, run, run.steps[run.warmup_steps :])]
        far_off = [mark for mark in measured if _distance(mark, times) > FAR_OFF]
        far_off.sort(key=lambda mark: -_distance(mark, times))
        marks += sorted(far_off[:MAX_OUTLIERS], key=lambda mark: (mark.repeat, mark.step))
    return tuple(marks)


def _choose_runs(runs: Sequence[Run]) -> tuple[Run, ...]:
    return tuple(run for run in runs if is_scored(run)) or tuple(runs[:1])


def _known_times(steps: Iterable[Step]) -> list[float]:
    return [step.step_time_s for step in steps if step.step_time_s]


def _mark(label: str, run: Trace, steps: Iterable[Step], *, is_warmup: bool = False) -> list[StepMark]:
    return [StepMark(label, step.step, step.step_time_s, is_warmup, run.repeat) for step in steps if step.step_time_s]


def _distance(mark: StepMark, times: StepTimes) -> float:
    """How far a step lies outside the middle half of the others, in widths of that half."""
    outside = max(mark.step_time_s - times.p75_s, times.p25_s - mark.step_time_s, 0.0)
    width = times.p75_s - times.p25_s
    return outside / width if width else outside / times.median_s
