"""What points of a sweep are ranked and searched by: figures of run.json's `result`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """One figure of a completed run, and which end of it is the better one."""

    name: str
    """Key of run.json's `result`."""
    title: str
    """As a table shows it, with its unit."""
    maximize: bool


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective(name="tokens_per_second_per_device", title="tokens/s/device", maximize=True),
        Objective(name="tflops_per_second_per_device", title="TFLOP/s/device", maximize=True),
        Objective(name="step_time_s", title="step time, s", maximize=False),
        Objective(name="final_loss", title="final loss", maximize=False),
        Objective(name="peak_device_memory_gib", title="peak device memory, GiB", maximize=False),
        Objective(name="peak_host_memory_gib", title="peak host memory, GiB", maximize=False),
        Objective(name="compile_time_s", title="compile time, s", maximize=False),
    )
}
"""Name -> objective, with its natural direction."""


def read_score(record: Mapping[str, Any], objective: Objective) -> float | None:
    """The objective's value of a run; None for every run that is not completed and for a figure that is not finite.

    Args:
        record: content of run.json.
        objective: `step_time_s` means the median after the warm-up.
    """
    result = record.get("result")
    if record.get("state") != "completed" or not isinstance(result, Mapping):
        return None
    value = result.get(objective.name)
    if isinstance(value, Mapping):
        value = value.get("median")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
