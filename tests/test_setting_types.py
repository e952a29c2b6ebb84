"""Which values our own settings take, from the command line and from a composed configuration."""

from typing import Any

import pytest

from primus_hydra.schema import Action, Direction
from primus_hydra.setting_types import check_setting


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sweep.direction", "minimize"),
        ("sweep.direction", Direction.maximize),
        ("sweep.direction", None),
        ("action", Action.check),
        ("sweep.objective", ["final_loss"]),
        ("sweep.rungs", [20, 100]),
        ("sweep.stop_below", None),
        ("run.timeout_s", 3),
    ],
)
def test_a_value_of_the_right_kind_is_taken(name: str, value: Any) -> None:
    assert check_setting(name, value, "here") is None


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("sweep.direction", "up", "maximize, minimize, null"),
        ("action", None, "train, check, export, explain"),
        ("sweep.on_invalid", None, "skip, stop"),
        ("platform.jax_platform", None, "rocm, cpu"),
        ("sweep.max_parallel", 0, "at least 1"),
        ("sweep.max_parallel", True, "a whole number"),
        ("sweep.keep", 1.5, "1"),
        ("sweep.stop_below", 1, "1"),
        ("sweep.rungs", [100, 20], "more than the one before"),
        ("sweep.objective", ["mfu"], "tokens_per_second_per_device"),
    ],
)
def test_another_value_is_refused_with_those_that_are_allowed(name: str, value: Any, allowed: str) -> None:
    problem = check_setting(name, value, "here")
    assert problem is not None
    assert problem.what.startswith(f"{name}=")
    assert allowed in problem.allowed
