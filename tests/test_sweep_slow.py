"""Which running points are stopped because they are slow."""

from typing import Any

import pytest

from primus_hydra.sweep.slow import Fastest, describe_slowness


def figures(tokens: float | None, step_time_s: float | None = 0.5, *, num_steps: int = 5) -> dict[str, Any]:
    return {
        "num_steps_measured": num_steps,
        "too_few_steps": False,
        "tokens_per_second_per_device": tokens,
        "step_time_s": {"median": step_time_s},
    }


FASTEST = Fastest().including(figures(12_345.6, 0.2))


def test_a_slow_point_is_told_with_both_speeds_and_the_number_of_steps() -> None:
    assert describe_slowness(figures(8000.0, num_steps=7), FASTEST, 0.8) == (
        "Stopped because it is slow: 8,000 tokens/s/device, the median of 7 steps after the warm-up, is 65% of the "
        "speed of the fastest completed point (12,346 tokens/s/device); sweep.stop_below=0.8."
    )


def test_where_token_rates_are_unknown_step_times_are_compared() -> None:
    text = describe_slowness(figures(None, 0.5), FASTEST, 0.8)
    assert "step time 0.5 s, the median of 5 steps" in text
    assert "is 40% of the speed of the fastest completed point (step time 0.2 s)" in text


@pytest.mark.parametrize(
    ("result", "fastest"),
    [
        (figures(0.8 * 12_345.6), FASTEST),  # exactly the fraction
        (figures(1e9), FASTEST),
        (figures(1.0, num_steps=4), FASTEST),
        (figures(1.0), Fastest()),
        (figures(None, None), FASTEST),
        (figures(1.0), Fastest(step_time_s=0.5)),  # a larger batch makes longer steps
        ({}, FASTEST),
    ],
)
def test_other_points_go_on(result: dict[str, Any], fastest: Fastest) -> None:
    assert describe_slowness(result, fastest, 0.8) == ""


def test_the_fastest_is_the_best_of_each_figure() -> None:
    fastest = FASTEST.including(figures(20_000.0, None)).including(figures(None, 0.1)).including({})
    assert fastest == Fastest(tokens_per_second_per_device=20_000.0, step_time_s=0.1)
