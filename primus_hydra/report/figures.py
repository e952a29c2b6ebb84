"""What a damaged or foreign JSON file says, as data of the types that a report draws, ranks and writes."""

import sys
from collections.abc import Mapping
from typing import Any

_NUMBERS = (
    *("tokens_per_second_per_device", "tflops_per_second_per_device"),
    *("peak_device_memory_gib", "peak_host_memory_gib", "compile_time_s"),
)
_LOSSES = ("first_loss", "final_loss")
_COUNTS = ("first_step", "last_step", "num_steps", "warmup_steps", "num_steps_measured", "num_devices")
_TEXTS = ("platform", "device_kind")
_FROM_STEP_TIMES = ("step_time_s", "tokens_per_second_per_device", "tflops_per_second_per_device")


def clean_result(value: object) -> dict[str, Any]:
    """The figures of run.json's `result`: each of its type, or None. Empty where there are none.

    Too few steps give no figure, whatever the record says: one of another version may hold some all the same.
    """
    result = mapping(value)
    if not result:
        return {}
    step_time = {name: number(time) for name, time in mapping(result.get("step_time_s")).items()}
    too_few = bool(result.get("too_few_steps")) or step_time.get("median") is None
    cleaned: dict[str, Any] = {"too_few_steps": too_few, "step_time_s": step_time}
    cleaned |= {name: number(result.get(name)) for name in _NUMBERS}
    cleaned |= {name: number(result.get(name), signed=True) for name in _LOSSES}
    cleaned |= {name: _count(result.get(name)) for name in _COUNTS}
    cleaned |= {name: text(result.get(name)) or None for name in _TEXTS}
    return cleaned | (dict.fromkeys(_FROM_STEP_TIMES) if too_few else {})


def mapping(value: object) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """The text, without halves of letters that no file could hold; empty where it is none."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """The texts of a list; what is no text is left out."""
    return tuple(text(item) for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def text_mapping(value: object) -> dict[str, str]:
    """The entries of a mapping whose values are texts."""
    return {text(name): text(item) for name, item in mapping(value).items() if isinstance(item, str)}


def number(value: object, *, signed: bool = False) -> float | None:
    """A figure; None where it is none: text, NaN, infinite, negative unless `signed`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= sys.float_info.max or (value < 0 and not signed):  # NaN compares as False
        return None
    return float(value)


def _count(value: object) -> int | None:
    amount = number(value)
    return None if amount is None else int(amount)
