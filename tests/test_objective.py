"""Objectives: which figure of which run is a score."""

from typing import Any

import pytest

from primus_hydra.objective import OBJECTIVES, choose_objective, describe_figure, read_figure, read_score
from tests.report_runs import make_result

TOKENS = OBJECTIVES["tokens_per_second_per_device"]


def score(name: str = TOKENS.name, state: str = "completed", **figures: Any) -> float | None:
    return read_score({"state": state, "result": make_result() | figures}, OBJECTIVES[name])


def test_every_objective_reads_its_figure() -> None:
    found = {name: score(name) for name in OBJECTIVES}
    assert found == {
        "tokens_per_second_per_device": 1000.0,
        "tflops_per_second_per_device": 2.0,
        "step_time_s": 1.0,
        "final_loss": 4.0,
        "peak_device_memory_gib": 100.0,
        "peak_host_memory_gib": 3.0,
        "compile_time_s": 12.0,
    }


@pytest.mark.parametrize("state", ["failed", "timed_out", "interrupted", "skipped", "running", "planned", "invalid"])
def test_only_a_completed_run_scores(state: str) -> None:
    assert score(state=state) is None


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1.0, 0.0, "fast", True, None, [], 10**400])
def test_a_figure_that_is_none_scores_nothing(figure: object) -> None:
    assert score(tokens_per_second_per_device=figure) is None


def test_a_loss_may_be_negative_or_zero() -> None:
    assert (score("final_loss", final_loss=-1.5), score("final_loss", final_loss=0.0)) == (-1.5, 0.0)
    assert score("final_loss", final_loss=float("nan")) is None


def test_too_few_steps_have_a_loss_and_no_speed() -> None:
    result = make_result(too_few_steps=True)
    assert [read_figure(result, OBJECTIVES[name]) for name in (TOKENS.name, "step_time_s", "final_loss")] == [
        None,
        None,
        4.0,
    ]


@pytest.mark.parametrize("record", [{}, {"state": "completed"}, {"state": "completed", "result": 3}])
def test_a_record_without_figures_scores_nothing(record: dict[str, Any]) -> None:
    assert read_score(record, TOKENS) is None


def test_the_direction_can_be_turned_around_and_the_name_must_exist() -> None:
    assert choose_objective("final_loss").maximize is False
    assert choose_objective("final_loss", "maximize").maximize is True
    assert choose_objective(TOKENS.name, "minimize").maximize is False
    with pytest.raises(KeyError):
        choose_objective("speed")


@pytest.mark.parametrize(
    ("objective", "value", "text"),
    [
        ("tokens_per_second_per_device", 12345.6, "12,346 tokens/s/device"),
        ("step_time_s", 0.51234, "step time 0.5123 s"),
        ("peak_device_memory_gib", 150.25, "peak device memory 150.2 GiB"),
        ("final_loss", 2.5, "final loss 2.5000"),
    ],
)
def test_figures_are_told_with_their_unit(objective: str, value: float, text: str) -> None:
    assert describe_figure(value, OBJECTIVES[objective]) == text
