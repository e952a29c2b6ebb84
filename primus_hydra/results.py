"""Result figures of one run, from its step records. Pure: no files, no clock."""

import math
import statistics
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
        child: what the child saw (child.json), or the part of it that the log tells.
        max_rss_bytes: peak resident memory of the trainer's largest process.

    Returns:
        Plain data; None where unknown. Speeds are medians, so a step that a profiler or an evaluation
        stretches does not move them; they are None when fewer than three steps are left.
    """
    measured = [record for record in records[warmup_steps:] if record.step_time_s]
    enough = len(measured) >= MINIMUM_STEPS
    step_time = _spread([record.step_time_s for record in measured if record.step_time_s]) if enough else None
    peak_device_memory = child.get("peak_device_memory_bytes")
    return {
        "first_step": records[0].step if records else None,
        "last_step": records[-1].step if records else None,
        "num_steps": len(records),
        "warmup_steps": warmup_steps,
        "num_steps_measured": len(measured),
        "too_few_steps": not enough,
        "step_time_s": step_time,
        "tokens_per_second_per_device": _per_second(measured, step_time, lambda record: record.tokens_per_device),
        "tflops_per_second_per_device": _per_second(measured, step_time, lambda record: record.tflops_per_device),
        "first_loss": _finite(records[0].loss) if records else None,
        "final_loss": _finite(records[-1].loss) if records else None,
        "peak_device_memory_gib": peak_device_memory / GIB if peak_device_memory is not None else None,
        "peak_host_memory_gib": max_rss_bytes / GIB if max_rss_bytes is not None else None,
        "compile_time_s": child.get("compile_time_s"),
        "platform": child.get("jax_platform"),
        "device_kind": child.get("device_kind"),
        "num_devices": child.get("num_devices"),
    }


def _spread(times: Sequence[float]) -> dict[str, float]:
    p25, median, p75 = statistics.quantiles(times, n=4, method="inclusive")
    return {"median": median, "p25": p25, "p75": p75, "min": min(times), "max": max(times)}


def _per_second(
    measured: Sequence[StepRecord],
    step_time: Mapping[str, float] | None,
    amount: Callable[[StepRecord], float | None],
) -> float | None:
    """Median work of a step over median step time."""
    amounts = [value for record in measured if (value := amount(record)) is not None]
    if step_time is None or not amounts:
        return None
    return statistics.median(amounts) / step_time["median"]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
