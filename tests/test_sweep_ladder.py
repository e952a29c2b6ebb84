"""rungs.json: what was decided once is not decided again, and what is damaged decides nothing."""

import json
from pathlib import Path

import pytest

from primus_hydra.runs import RecordError
from primus_hydra.sweep.halving import Rule, decide
from primus_hydra.sweep.ladder import RUNGS_FILE, Ladder, describe_decision
from tests.run_folders import make_stub_plan

RULE = Rule(rungs=(20, 100), keep=0.5, objective="tokens_per_second_per_device", maximize=True)
DECISION = decide(RULE, 20, {"a": 2.0, "b": 1.0, "c": None}, {"a": 500, "b": 500, "c": 500})


def test_a_decision_is_read_back_as_it_was_made(tmp_path: Path) -> None:
    Ladder(tmp_path, RULE).add(DECISION)
    again = Ladder(tmp_path, RULE)
    assert again.decision(20) == DECISION
    assert again.decision(100) is None
    assert set(again.dropped()) == {"c"}


def test_points_that_came_later_are_refused(tmp_path: Path) -> None:
    ladder = Ladder(tmp_path, RULE)
    ladder.check_names(["anything"])
    ladder.add(DECISION)
    ladder.check_names(["a", "c"])
    with pytest.raises(RecordError, match="without d"):
        ladder.check_names(["a", "d"])


@pytest.mark.parametrize("content", ['{"rule": {', "[]", "{}", '{"rule": {"rungs": [1]}, "decisions": []}'])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / RUNGS_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(RecordError, match=RUNGS_FILE):
        Ladder(tmp_path, RULE)


@pytest.mark.parametrize("field", ["steps", "scores", "survivors", "dropped"])
def test_a_damaged_decision_is_refused(tmp_path: Path, field: str) -> None:
    Ladder(tmp_path, RULE).add(DECISION)
    data = json.loads((tmp_path / RUNGS_FILE).read_text(encoding="utf-8"))
    data["decisions"][0][field] = None
    (tmp_path / RUNGS_FILE).write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(RecordError, match="damaged"):
        Ladder(tmp_path, RULE)


def test_a_decision_says_how_far_the_survivors_go_and_from_where(tmp_path: Path) -> None:
    plans = [make_stub_plan(tmp_path / name, steps=500) for name in "abc"]
    assert describe_decision(
        RULE, decide(RULE, 20, {"a": 3.0, "b": 2.0, "c": 1.0}, dict.fromkeys("abc", 500)), plans
    ) == ("Rung 20: 2 of 3 points go on to step 100, from the beginning (no checkpoint).")
    for plan in plans:
        (Path(plan.keys["base_output_directory"]) / plan.keys["run_name"] / "checkpoints" / "99").mkdir(parents=True)
    tied = decide(RULE, 100, {"a": 1.0, "b": 1.0, "c": 1.0}, dict.fromkeys("abc", 500))
    assert describe_decision(RULE, tied, plans) == (
        "Rung 100: 3 of 3 points go on to step 500, from their checkpoints (2 would; 1 more cannot be told apart)."
    )
