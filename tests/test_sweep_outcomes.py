"""What a sweeper is told about a point."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from primus_hydra.errors import Problem
from primus_hydra.points import Point
from primus_hydra.runs import RunFolder
from primus_hydra.sweep.judge import Standing, Verdict
from primus_hydra.sweep.outcomes import read_outcome, sweep_exit_code
from tests.run_folders import make_stub_plan

BOTH = ["tokens_per_second_per_device", "final_loss"]


def _run(path: Path, state: str, speed: float | None = None, **more: Any) -> Standing:
    """A run whose record says this."""
    path.mkdir()
    plan = make_stub_plan(path)
    result = {"tokens_per_second_per_device": speed, "final_loss": 2.0}
    plan.folder.write_record({"state": state, "result": result} | more)
    point = Point(number=0, overrides=(), folder=plan.folder, plan=plan, problems=())
    return Standing(run=point, verdict=Verdict.RUN)


def test_a_completed_point_has_its_figures(tmp_path: Path) -> None:
    standing = _run(tmp_path / "a", "completed", 100.0)
    outcome = read_outcome(standing.run, [standing], BOTH)
    assert outcome.scores == (100.0, 2.0)
    assert outcome.record is not None
    assert outcome.record["state"] == "completed"


def test_repeats_count_by_the_median_of_those_that_completed(tmp_path: Path) -> None:
    speeds = {"a": 100.0, "b": 300.0, "c": 120.0}
    standings = [_run(tmp_path / name, "completed", speed) for name, speed in speeds.items()]
    standings.append(_run(tmp_path / "d", "failed", 900.0))
    assert read_outcome(standings[0].run, standings, BOTH[:1]).scores == (120.0,)


def test_what_did_not_complete_has_no_figures(tmp_path: Path) -> None:
    for state in ("failed", "skipped", "interrupted", "planned", "running"):
        standing = _run(tmp_path / state, state, 100.0)
        assert read_outcome(standing.run, [standing], BOTH).scores == (None, None)
    too_short = _run(tmp_path / "short", "completed")
    assert read_outcome(too_short.run, [too_short], BOTH).scores == (None, 2.0)


def test_a_point_that_trains_what_another_trains_has_its_figures(tmp_path: Path) -> None:
    first = _run(tmp_path / "a", "completed", 100.0)
    twin = replace(first.run, number=1, folder=RunFolder(tmp_path / "b"))
    standing = Standing(run=twin, verdict=Verdict.SAME, same_as=first.run)
    outcome = read_outcome(twin, [standing], BOTH[:1])
    assert (outcome.point, outcome.scores) == (twin, (100.0,))


def test_a_refused_point_has_neither_record_nor_figures(tmp_path: Path) -> None:
    refused = Point(
        number=0, overrides=(), folder=RunFolder(tmp_path), plan=None, problems=(Problem(what="It cannot be."),)
    )
    outcome = read_outcome(refused, [Standing(run=refused, verdict=Verdict.INVALID)], BOTH)
    assert (outcome.record, outcome.scores) == (None, (None, None))


def test_the_exit_code_tells_whether_everything_that_was_to_run_ran(tmp_path: Path) -> None:
    good = [_run(tmp_path / state, state) for state in ("completed", "skipped")]
    assert sweep_exit_code(good) == 0
    for state in ("failed", "timed_out", "planned", "running"):
        assert sweep_exit_code([*good, _run(tmp_path / state, state)]) == 1
    damaged = _run(tmp_path / "damaged", "completed")
    damaged.run.folder.run_json.write_text("{", encoding="utf-8")
    assert sweep_exit_code([damaged]) == 1
