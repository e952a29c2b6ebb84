"""Result figures of one run, from its step records. Pure: no files, no clock."""

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from primus_hydra.maxtext.metrics import StepRecord

MINIMUM_STEPS = 3
"""Fewer measured steps give no figure: the first steps of a run say nothing about its speed."""
GIB = 1 << 30


def compute_result(
    records: Sequence[StepRecord],
    *,
    warmup_steps: int,
    child: Mapping[str, Any],
    max_rss_bytes: int | None,
) -> dict[str, Any]:
    """The figures of run.json's `result`.

    Args:
        records: the finished steps of this attempt, in order.
        warmup_steps: records dropped from the front by position, whatever their step numbers: a run that resumed
            at step 10 compiles and warms up as well.
        child: what the child saw (child.json), or the part of it that the log tells. A trainer of the user's own
            may write anything there: what is of a wrong type counts as unknown.
        max_rss_bytes: peak resident memory of the trainer's largest process.

    Returns:
        Plain data; None where unknown. Speeds are medians, so a step that a profiler or an evaluation
        stretches does not move them; they are None when fewer than three steps are left.
    """
    measured = [record for record in records[warmup_steps:] if record.step_time_s]
    step_time = _spread([record.step_time_s for record in measured if record.step_time_s])
    peak_device_memory = _amount(child, "peak_device_memory_bytes")
    return {
        "first_step": records[0].step if records else None,
        "last_step": records[-1].step if records else None,
        "num_steps": len(records),
        "warmup_steps": warmup_steps,
        "num_steps_measured": len(measured),
        "too_few_steps": step_time is None,
        "step_time_s": step_time,
        "tokens_per_second_per_device": _per_second(measured, step_time, lambda record: record.tokens_per_device),
        "tflops_per_second_per_device": _per_second(measured, step_time, lambda record: record.tflops_per_device),
        "first_loss": _finite(records[0].loss) if records else None,
        "final_loss": _finite(records[-1].loss) if records else None,
        "peak_device_memory_gib": peak_device_memory / GIB if peak_device_memory is not None else None,
        "peak_host_memory_gib": max_rss_bytes / GIB if max_rss_bytes is not None else None,
        "compile_time_s": _amount(child, "compile_time_s"),
        "platform": _text(child, "jax_platform"),
        "device_kind": _text(child, "device_kind"),
        "num_devices": _count(child, "num_devices"),
    }


def resumed_at_step(records: Sequence[StepRecord], child: Mapping[str, Any]) -> int | None:
    """The step at which a restored run went on: as the child says, or its first step; None if it began at 0."""
    return _count(child, "resumed_at_step") or (records[0].step if records else 0) or None


def _amount(child: Mapping[str, Any], name: str) -> float | None:
    value = child.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= sys.float_info.max else None  # type: ignore[operator]


def _count(child: Mapping[str, Any], name: str) -> int | None:
    value = _amount(child, name)
    return value if isinstance(value, int) else None


def _text(child: Mapping[str, Any], name: str) -> str | None:
    value = child.get(name)
    return value if isinstance(value, str) else None


def _spread(times: Sequence[float]) -> dict[str, float] | None:
    """None for too few times, or for times so absurd that their quartiles overflow."""
    if len(times) < MINIMUM_STEPS:
        return None
    p25, median, p75 = statistics.quantiles(times, n=4, method="inclusive")
    spread = {"median": median, "p25": p25, "p75": p75, "min": min(times), "max": max(times)}
    return spread if all(map(math.isfinite, spread.values())) else None


def _per_second(
    measured: Sequence[StepRecord],
    step_time: Mapping[str, float] | None,
    amount: Callable[[StepRecord], float | None],
) -> float | None:
    """Median work of a step over median step time."""
    amounts = [value for record in measured if (value := amount(record)) is not None]
    if step_time is None or not amounts:
        return None
    return _finite(statistics.median(amounts) / step_time["median"])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
