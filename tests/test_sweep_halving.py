"""Who goes on after a rung, and which rungs make sense."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.errors import Problem
from primus_hydra.points import Plan
from primus_hydra.sweep.halving import Rule, check_rungs, decide, final_steps, plan_rung
from tests.run_folders import make_stub_plan

SPEED = Rule(rungs=(20, 100), keep=0.5, objective="tokens_per_second_per_device", maximize=True)


def _total(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 500)


def test_the_best_fraction_goes_on_and_the_others_are_told_why() -> None:
    scores = {"a": 1000.0, "b": 1234.0, "c": 2345.0, "d": 900.0}
    decision = decide(SPEED, 20, scores, _total(*scores))
    assert decision.survivors == ("c", "b")
    assert decision.dropped == {
        "a": "Stopped after 20 of 500 steps: 3rd of 4 (1,000 tokens/s/device; the best had 2,345 tokens/s/device).",
        "d": "Stopped after 20 of 500 steps: 4th of 4 (900 tokens/s/device; the best had 2,345 tokens/s/device).",
    }


def test_the_smaller_figure_wins_where_that_is_the_better_end() -> None:
    rule = replace(SPEED, objective="final_loss", maximize=False)
    assert decide(rule, 20, {"a": 2.0, "b": 1.0}, _total("a", "b")).survivors == ("b",)


@pytest.mark.parametrize(
    ("keep", "num_points", "num_kept"),
    [(0.5, 8, 4), (0.5, 3, 2), (0.5, 1, 1), (0.01, 8, 1), (1.0, 3, 3), (0.7, 10, 7), (0.1, 30, 3)],
)
def test_the_number_that_goes_on_is_rounded_up_and_at_least_one(keep: float, num_points: int, num_kept: int) -> None:
    scores = {f"p{number}": float(number + 1) for number in range(num_points)}
    assert len(decide(replace(SPEED, keep=keep), 20, scores, _total(*scores)).survivors) == num_kept


def test_whoever_is_as_good_as_the_last_survivor_goes_on_too() -> None:
    scores = {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}
    assert decide(SPEED, 20, scores, _total(*scores)).survivors == ("a", "b", "c")


def test_a_failed_point_never_goes_on_and_counts_among_the_compared() -> None:
    scores = {"a": 3.0, "b": None, "c": 2.0, "d": None}
    decision = decide(SPEED, 20, scores, _total(*scores))
    assert decision.survivors == ("a", "c")
    assert decision.dropped["b"] == "Not continued after 20 of 500 steps: it has no tokens/s/device to compare."
    nobody = decide(SPEED, 20, {"a": None, "b": None}, _total("a", "b"))
    assert nobody.survivors == ()
    assert set(nobody.dropped) == {"a", "b"}


def _plan(path: Path, *, keys: dict[str, Any] | None = None, **sweep: Any) -> Plan:
    plan = make_stub_plan(path, steps=500)
    for name, value in sweep.items():
        setattr(plan.composition.settings.sweep, name, value)
    return replace(plan, keys=plan.keys | {"enable_checkpointing": False} | (keys or {}))


def test_a_rung_is_the_same_run_with_fewer_steps_and_the_whole_runs_schedule(tmp_path: Path) -> None:
    plan = _plan(tmp_path / "run")
    rung = plan_rung(plan, 20)
    assert {key: value for key, value in rung.keys.items() if plan.keys.get(key) != value} == {
        "steps": 20,
        "learning_rate_schedule_steps": 500,
    }
    assert rung.origins["steps"] == "sweep.rungs=20"
    assert rung.folder == plan.folder
    assert plan.keys["steps"] == 500


def test_a_schedule_that_somebody_set_stays(tmp_path: Path) -> None:
    longer = _plan(tmp_path / "a", keys={"learning_rate_schedule_steps": 900})
    assert plan_rung(longer, 20).keys["learning_rate_schedule_steps"] == 900
    by_schedule = _plan(tmp_path / "b", keys={"steps": -1, "learning_rate_schedule_steps": 300})
    assert final_steps(by_schedule.keys) == 300
    assert plan_rung(by_schedule, 20).keys["steps"] == 20


def _what(problems: list[Problem]) -> str:
    return "\n".join(problem.what for problem in problems)


def test_good_rungs_have_no_problems(tmp_path: Path) -> None:
    assert check_rungs([_plan(tmp_path, rungs=[6, 10, 500])]) == []
    assert check_rungs([_plan(tmp_path, rungs=[6, 12, 494], keys={"enable_checkpointing": True})]) == []
    assert check_rungs([_plan(tmp_path)]) == []


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({"rungs": [5, 100]}, "only after 6 steps"),
        ({"rungs": [20, 501]}, "501 steps are more than a point makes, steps=500"),
        ({"rungs": [20], "repeats": 2}, "compares single runs"),
    ],
)
def test_rungs_that_make_no_sense_are_refused(tmp_path: Path, sweep: dict[str, Any], words: str) -> None:
    assert words in _what(check_rungs([_plan(tmp_path, **sweep)]))


def test_rungs_of_runs_that_continue_must_lie_apart(tmp_path: Path) -> None:
    checkpoints = {"enable_checkpointing": True}
    assert "only after 6 steps" in _what(check_rungs([_plan(tmp_path, rungs=[20, 25], keys=checkpoints)]))
    assert "only after 6 steps" in _what(check_rungs([_plan(tmp_path, rungs=[20, 495], keys=checkpoints)]))
    assert check_rungs([_plan(tmp_path, rungs=[20, 25])]) == []


def test_the_shortest_point_decides_how_far_rungs_may_go(tmp_path: Path) -> None:
    short = _plan(tmp_path / "b", keys={"steps": 50}, rungs=[60])
    assert "steps=50" in _what(check_rungs([_plan(tmp_path / "a", rungs=[60]), short]))
