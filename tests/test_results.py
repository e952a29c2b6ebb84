"""Result figures, with the numbers worked out by hand."""

import math
from collections.abc import Sequence

import pytest

from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.results import GIB, compute_result


def steps(times: Sequence[float], first: int = 0, loss: float = 5.0) -> list[StepRecord]:
    return [
        StepRecord(
            step=first + index,
            step_time_s=time,
            loss=loss - index,
            tokens_per_device=1000.0,
            tflops_per_device=10.0,
            total_weights=1000.0,
        )
        for index, time in enumerate(times)
    ]


def figures(records: list[StepRecord], warmup_steps: int = 3) -> dict[str, float]:
    return compute_result(records, warmup_steps=warmup_steps, child={}, max_rss_bytes=None)


def test_the_first_steps_are_dropped_and_the_median_is_taken() -> None:
    result = compute_result(steps([0.1, 0.6, 0.002, *[0.5] * 9]), warmup_steps=3, child={}, max_rss_bytes=2 * GIB)
    assert result["step_time_s"] == {"median": 0.5, "p25": 0.5, "p75": 0.5, "min": 0.5, "max": 0.5}
    assert (result["num_steps"], result["num_steps_measured"], result["too_few_steps"]) == (12, 9, False)
    assert (result["tokens_per_second_per_device"], result["tflops_per_second_per_device"]) == (2000, 20)
    assert (result["first_loss"], result["final_loss"]) == (5.0, -6.0)
    assert result["peak_host_memory_gib"] == 2


def test_quartiles_are_interpolated() -> None:
    result = compute_result(steps([9, 1, 2, 3, 4]), warmup_steps=1, child={}, max_rss_bytes=None)
    assert result["step_time_s"] == {"median": 2.5, "p25": 1.75, "p75": 3.25, "min": 1, "max": 4}


def test_two_measured_steps_are_too_few() -> None:
    result = figures(steps([0.1, 0.6, 0.002, 0.5, 0.5]))
    assert (result["too_few_steps"], result["num_steps_measured"]) == (True, 2)
    assert result["step_time_s"] is result["tokens_per_second_per_device"] is None
    assert result["final_loss"] == 1.0


def test_a_resumed_run_drops_records_by_position() -> None:
    result = figures(steps([30.0, 0.6, 0.002, *[0.5] * 9], first=10))
    assert (result["first_step"], result["last_step"], result["num_steps_measured"]) == (10, 21, 9)
    assert result["tokens_per_second_per_device"] == 2000


def test_a_profiled_step_and_one_beside_an_evaluation_do_not_move_the_figures() -> None:
    times = [0.1, 0.6, 0.002, *[0.5] * 9]
    times[5], times[8] = 4.0, 9.0
    assert figures(steps(times))["tokens_per_second_per_device"] == 2000


def test_no_records_give_no_numbers() -> None:
    result = figures([])
    assert result["num_steps"] == 0
    assert result["too_few_steps"]
    assert [result[key] for key in ("first_step", "step_time_s", "final_loss", "platform")] == [None] * 4


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_becomes_null(loss: float) -> None:
    assert figures(steps([1.0] * 8, loss=loss))["final_loss"] is None


def test_what_the_child_saw_is_taken_over() -> None:
    child = {
        "jax_platform": "gpu",
        "device_kind": "AMD Instinct MI300X",
        "num_devices": 8,
        "compile_time_s": 42.5,
        "peak_device_memory_bytes": 3 * GIB,
    }
    result = compute_result(steps([1.0] * 8), warmup_steps=3, child=child, max_rss_bytes=None)
    assert (result["platform"], result["device_kind"], result["num_devices"]) == ("gpu", "AMD Instinct MI300X", 8)
    assert (result["compile_time_s"], result["peak_device_memory_gib"], result["peak_host_memory_gib"]) == (
        42.5,
        3,
        None,
    )
