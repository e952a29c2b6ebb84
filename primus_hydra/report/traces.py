"""Step by step data of a few points: loss curves and step times."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from primus_hydra.report.model import Run, Step
from primus_hydra.report.points import FINISHED, Point

MAX_CURVES = 12
MAX_DIVERGED = 4
"""Points whose loss was not finite that are shown besides the best ones."""
MAX_CURVE_POINTS = 300
MAX_OUTLIERS = 20
FAR_OFF = 3.0
"""A step is shown by itself from this many widths of the middle half outside of it."""
MINIMUM_STEPS = 3
"""Fewer measured steps have no distribution."""

Traces = Mapping[str, Sequence[Step]]
"""Label of a point -> the steps of one of its runs, in order."""


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
    """How the measured step times of one run are spread, seconds."""

    label: str
    p5_s: float
    p25_s: float
    median_s: float
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


def choose_traced(points: Sequence[Point]) -> tuple[tuple[Point, Run], ...]:
    """The best points and some that diverged, each with the run that stands for it: the first completed repeat."""
    best = [point for point in points if point.row.rank is not None][:MAX_CURVES]
    diverged = [point for point in points if point.row.failure == "not_finite_loss"][:MAX_DIVERGED]
    return tuple((point, _choose_run(point.runs)) for point in [*best, *diverged] if point.runs)


def list_losses(traces: Traces) -> tuple[LossPoint, ...]:
    """Every curve with at most MAX_CURVE_POINTS points; peaks and gaps survive."""
    return tuple(
        LossPoint(label, step.step, step.loss) for label, steps in traces.items() for step in thin_out_steps(steps)
    )


def list_last_finite(traces: Traces) -> tuple[LastFinite, ...]:
    """The last finite loss of every curve that goes on without one."""
    found = []
    for label, steps in traces.items():
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


def list_step_times(traces: Traces, warmup_steps: Mapping[str, int]) -> tuple[StepTimes, ...]:
    """Quantiles of the steps after the warm-up; `warmup_steps` is by label, dropped by position."""
    found = []
    for label, steps in traces.items():
        times = _known_times(steps[warmup_steps.get(label, 0) :])
        if len(times) >= MINIMUM_STEPS:
            cuts = statistics.quantiles(times, n=20, method="inclusive")
            found.append(StepTimes(label, cuts[0], cuts[4], cuts[9], cuts[14], cuts[18], len(times)))
    return tuple(found)


def list_step_marks(traces: Traces, warmup_steps: Mapping[str, int]) -> tuple[StepMark, ...]:
    """Warm-up steps, and of each run at most MAX_OUTLIERS steps that lie farthest off the others."""
    spread = {times.label: times for times in list_step_times(traces, warmup_steps)}
    marks: list[StepMark] = []
    for label, times in spread.items():
        steps, count = traces[label], warmup_steps.get(label, 0)
        marks += _mark(label, steps[:count], is_warmup=True)
        far_off = [mark for mark in _mark(label, steps[count:], is_warmup=False) if _distance(mark, times) > FAR_OFF]
        far_off.sort(key=lambda mark: -_distance(mark, spread[mark.label]))
        marks += sorted(far_off[:MAX_OUTLIERS], key=lambda mark: mark.step)
    return tuple(marks)


def _choose_run(runs: Sequence[Run]) -> Run:
    return next((run for run in runs if run.state in FINISHED), runs[0])


def _known_times(steps: Iterable[Step]) -> list[float]:
    return [step.step_time_s for step in steps if step.step_time_s]


def _mark(label: str, steps: Iterable[Step], *, is_warmup: bool) -> list[StepMark]:
    return [StepMark(label, step.step, step.step_time_s, is_warmup) for step in steps if step.step_time_s]


def _distance(mark: StepMark, times: StepTimes) -> float:
    """How far a step lies outside the middle half of the others, in widths of that half."""
    outside = max(mark.step_time_s - times.p75_s, times.p25_s - mark.step_time_s, 0.0)
    width = times.p75_s - times.p25_s
    return outside / width if width else outside / times.median_s
