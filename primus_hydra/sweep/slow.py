"""Which running point is too slow to be worth its GPU time. Pure: figures in, one sentence out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from primus_hydra.objective import OBJECTIVES, describe_figure, read_figure

MINIMUM_STEPS = 5
"""Measured steps before a running point is judged: more than a figure needs, because stopping cannot be undone."""
_TOKENS = OBJECTIVES["tokens_per_second_per_device"]
_STEP_TIME = OBJECTIVES["step_time_s"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fastest:
    """The fastest completed point so far."""

    tokens_per_second_per_device: float | None = None
    """None where no completed point has it."""
    step_time_s: float | None = None
    """The shortest median step."""

    def including(self, result: Mapping[str, Any]) -> "Fastest":
        """The fastest with one more completed point; `result` is that of its run.json."""
        return Fastest(
            tokens_per_second_per_device=_extreme(max, self.tokens_per_second_per_device, read_figure(result, _TOKENS)),
            step_time_s=_extreme(min, self.step_time_s, read_figure(result, _STEP_TIME)),
        )


def describe_slowness(result: Mapping[str, Any], fastest: Fastest, stop_below: float) -> str:
    """Why a running point should be stopped, with the figures; empty where it should not.

    Step times are compared only where token rates are unknown: points may differ in their batch.

    Args:
        result: figures of the point so far, as `compute_result` gives them.
        fastest: what it is compared with.
        stop_below: fraction of that speed, `sweep.stop_below`.
    """
    num_steps = result.get("num_steps_measured") or 0
    if num_steps < MINIMUM_STEPS:
        return ""
    for objective, best in ((_TOKENS, fastest.tokens_per_second_per_device), (_STEP_TIME, fastest.step_time_s)):
        value = read_figure(result, objective)
        if value is not None and best is not None:
            break
    else:
        return ""
    fraction = value / best if objective.maximize else best / value
    if fraction >= stop_below:
        return ""
    return (
        f"Stopped because it is slow: {describe_figure(value, objective)}, the median of {num_steps} steps after "
        f"the warm-up, is {fraction:.0%} of the speed of the fastest completed point "
        f"({describe_figure(best, objective)}); sweep.stop_below={stop_below:g}."
    )


def _extreme(choose: Callable[[list[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
