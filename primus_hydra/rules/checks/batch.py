"""Arithmetic on batch, heads, vocabulary and steps."""

from collections.abc import Iterator
from typing import Any

from primus_hydra.mesh import compute_global_batch
from primus_hydra.rules.context import RuleContext

_MOST_HEADS = 1024
"""Divisors are listed up to here; no model has more heads."""


def find_empty_global_batch(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Fewer than one sequence over all devices."""
    per_device = context.effective.get("per_device_batch_size")
    num_devices = _number(context.platform.devices_per_node) * _number(context.platform.nodes)
    if num_devices < 1 or not isinstance(per_device, int | float):
        return
    batch = compute_global_batch(context.effective, int(num_devices))
    if batch is not None and batch < 1:
        yield {"global_batch": batch, "num_devices": int(num_devices), "smallest": f"{1 / num_devices:g}"}


def find_grouped_query_mismatch(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Query heads that do not divide among the key/value heads."""
    heads = _number(context.effective.get("base_num_query_heads"))
    kv_heads = _number(context.effective.get("base_num_kv_heads"))
    if heads > 0 and (kv_heads < 1 or heads % kv_heads):
        divisors = [str(count) for count in range(1, min(int(heads), _MOST_HEADS) + 1) if heads % count == 0]
        yield {"divisors": ", ".join(divisors)}


def find_vocabulary_tile_mismatch(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Tokens per device that do not divide into the vocabulary tiles."""
    effective = context.effective
    tokens = _number(effective.get("per_device_batch_size")) * _number(effective.get("max_target_length"))
    tiles = _number(effective.get("num_vocab_tiling"))
    if tiles > 1 and tokens > 0 and tokens % tiles:
        yield {"tokens": f"{tokens:g}"}


def find_late_profiler_window(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A profile that would start after the last step, or hold none."""
    skip, steps, length = _read_profiler_window(context)
    if not context.effective.get("profiler") or steps < 1:
        return
    if skip >= steps or length < 1:
        yield {"needed": int(skip) + 1, "last_step": int(steps) - 1}


def find_cut_profiler_window(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A profile that the end of the run cuts short."""
    skip, steps, length = _read_profiler_window(context)
    if context.effective.get("profiler") and 1 <= steps - skip < length:
        yield {"held": int(steps - skip), "needed": int(skip + length)}


def _read_profiler_window(context: RuleContext) -> tuple[float, float, float]:
    """Steps skipped, steps of the run, steps to profile; `steps=-1` takes the schedule's length as MaxText does."""
    effective = context.effective
    steps = effective.get("steps")
    steps = effective.get("learning_rate_schedule_steps") if steps == -1 else steps
    skip, length = effective.get("skip_first_n_steps_for_profiler"), effective.get("profiler_steps")
    return _number(skip), _number(steps), _number(length)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
