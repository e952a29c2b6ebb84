"""What points of a sweep are ranked and searched by: figures of run.json's `result`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """One figure of a completed run, and which end of it is the better one."""

    name: str
    """Key of run.json's `result`."""
    title: str
    """As a table shows it, with its unit."""
    maximize: bool
    step_time_power: int = 0
    """The figure varies within a run as this power of the step time: 1 for the time itself, -1 for a speed; 0: it is
    one number of the whole run, without a spread."""

    @property
    def direction(self) -> str:
        """`maximize` or `minimize`."""
        return "maximize" if self.maximize else "minimize"


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective(name="tokens_per_second_per_device", title="tokens/s/device", maximize=True, step_time_power=-1),
        Objective(name="tflops_per_second_per_device", title="TFLOP/s/device", maximize=True, step_time_power=-1),
        Objective(name="step_time_s", title="step time, s", maximize=False, step_time_power=1),
        Objective(name="final_loss", title="final loss", maximize=False),
        Objective(name="peak_device_memory_gib", title="peak device memory, GiB", maximize=False),
        Objective(name="peak_host_memory_gib", title="peak host memory, GiB", maximize=False),
        Objective(name="compile_time_s", title="compile time, s", maximize=False),
    )
}
"""Name -> objective, with its natural direction."""
DEFAULT_OBJECTIVE = "tokens_per_second_per_device"


def choose_objective(name: str, direction: str | None = None) -> Objective:
    """The objective of that name, in the direction that is asked for.

    Args:
        name: one of `OBJECTIVES`.
        direction: `maximize`, `minimize`, or None for the natural one.

    Raises:
        KeyError: there is no such objective.
    """
    objective = OBJECTIVES[name]
    return objective if direction is None else replace(objective, maximize=direction == "maximize")


def read_score(record: Mapping[str, Any], objective: Objective) -> float | None:
    """The objective's value of a run; None for every run that is not completed and for a figure that is not finite.

    Args:
        record: content of run.json.
        objective: `step_time_s` means the median after the warm-up.
    """
    result = record.get("result")
    if record.get("state") != "completed" or not isinstance(result, Mapping):
        return None
    return read_figure(result, objective)


def read_figure(result: Mapping[str, Any], objective: Objective) -> float | None:
    """The objective's value among a run's figures, whatever became of the run.

    None for what is no finite number, for a speed or a step time that is not above 0 or rests on too few steps, and
    for a negative one of anything but a loss.
    """
    value = result.get(objective.name)
    if isinstance(value, Mapping):
        value = value.get("median")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= sys.float_info.max:  # NaN compares as False
        return None
    if objective.step_time_power and (value <= 0 or result.get("too_few_steps")):
        return None
    return None if value < 0 and objective.name != "final_loss" else float(value)


def format_figure(value: float, objective: Objective) -> str:
    """A value as a table shows it, without its unit: `31,018`, `0.5123`."""
    if objective.name == "final_loss":
        return f"{value:.4f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def describe_figure(value: float, objective: Objective) -> str:
    """A value with its unit: `31,018 tokens/s/device`, `step time 0.5123 s`."""
    number, (title, comma, unit) = format_figure(value, objective), objective.title.partition(", ")
    if comma:
        return f"{title} {number} {unit}"
    return f"{number} {title}" if "/" in title else f"{title} {number}"
