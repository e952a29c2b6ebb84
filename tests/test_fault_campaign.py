"""The fault campaign in a short form, and that its examiner sees what it is there to see."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fault_campaign import run_campaign
from tests.faults.examiner import Examiner
from tests.faults.place import Place
from tests.faults.scenarios import Scenario
from tests.faults.tally import Tally
from tests.faults.victim_sweep import VictimSweep

SMALL = Scenario(
    name="small",
    settings=("steps=8", "sweep.max_parallel=2"),
    stubs=("step_s=0.001", "fail_at=3", None),
    endings={1: "failed", 2: "invalid"},
)
Record = dict[str, Any]


@pytest.mark.slow
def test_no_result_is_lost_made_twice_or_made_up_whatever_is_killed(tmp_path: Path) -> None:
    tally = run_campaign(tmp_path, kills=12, seed=3, kills_a_sweep=6)
    assert not tally.findings, tally.describe()
    assert tally.num_kills == 12
    assert tally.num_results > 8


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A sweep that nobody hurt."""
    place = Place(folder=tmp_path_factory.mktemp("done"), mark="unhurt")
    tally = Tally()
    VictimSweep(SMALL, place, random.Random(1), tally).hurt(0)
    assert not tally.findings, tally.describe()
    return place


@pytest.fixture
def examined(done: Place, tmp_path: Path) -> Examiner:
    """An examiner that has seen a copy of that sweep as it was."""
    shutil.copytree(done.folder, tmp_path / "copy")
    place = Place(folder=tmp_path / "copy", mark="copy")
    examiner = Examiner(folder=place.sweep, journal_file=place.journal, scenario=SMALL)
    assert not examiner.look_at_the_end()
    return examiner


def change_record(examiner: Examiner, point: int, change: Callable[[Record], object]) -> str:
    """Change the record of a point; returns the name of its folder."""
    (file,) = examiner.folder.glob(f"{point:04d}-*/run.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")
    return file.parent.name


def test_a_figure_that_was_made_up_is_seen(examined: Examiner) -> None:
    name = change_record(examined, 0, lambda record: record["result"].update(final_loss=9.0))
    findings = examined.look(is_quiet=True)
    assert any(f"The result of {name} (completed) is not what its trainer did last" in text for text in findings)


def test_a_failed_point_that_counts_as_completed_is_seen(examined: Examiner) -> None:
    name = change_record(examined, 1, lambda record: record.update(state="completed"))
    assert f"{name} is completed although it always fails." in examined.look(is_quiet=True)


def test_a_refused_point_that_runs_is_seen(examined: Examiner) -> None:
    name = change_record(examined, 2, lambda record: record.update(state="planned"))
    assert f"{name} is planned and ran 0 times; it should be invalid." in examined.look(is_quiet=True)


def test_a_result_that_is_lost_is_seen(examined: Examiner) -> None:
    name = change_record(examined, 0, lambda record: record.update(state="planned", result=None))
    assert examined.look(is_quiet=True) == [f"The result of {name} with 8 steps is lost."]


def test_a_result_that_is_made_a_second_time_is_seen(examined: Examiner) -> None:
    lines = examined.journal_file.read_text(encoding="utf-8").splitlines()
    name = next(path.name for path in examined.folder.glob("0000-*"))
    start = next(line for line in lines if name in line)
    with examined.journal_file.open("a", encoding="utf-8") as journal:
        journal.write(f"{start}\n")
    assert f"{name} was complete with 8 steps, and ran 1 times again." in examined.look(is_quiet=True)


def test_a_file_that_is_half_written_is_seen(examined: Examiner) -> None:
    file = examined.folder / "sweep.json"
    file.write_text(file.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    (finding,) = examined.look(is_quiet=True)
    assert finding.startswith(f"{file} cannot be read")


def test_a_decision_that_rests_on_nothing_or_changes_is_seen(examined: Examiner) -> None:
    (folder,) = examined.folder.glob("0000-*")
    decision = {"steps": 8, "scores": {folder.name: 1.0}, "survivors": [folder.name], "dropped": {}}
    file = examined.folder / "rungs.json"
    file.write_text(json.dumps({"decisions": [decision]}), encoding="utf-8")
    finding = f"Rung 8 was decided with a figure of {folder.name} that nobody measured: 1.0."
    assert examined.look(is_quiet=True) == [finding]
    file.write_text(json.dumps({"decisions": []}), encoding="utf-8")
    (finding,) = examined.look(is_quiet=True)
    assert finding.startswith("A decision about a rung has changed")


def test_what_a_killed_writer_left_and_results_that_disagree_are_seen_at_the_end(examined: Examiner) -> None:
    (examined.folder / ".sweep.json.0123abcd.tmp").touch()
    results = json.loads((examined.folder / "results.json").read_text(encoding="utf-8"))
    results["runs"][0]["state"] = "failed"
    (examined.folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    disagreement, litter = examined.look_at_the_end()
    assert disagreement.startswith("results.json says something else")
    assert litter == "Left behind: .sweep.json.0123abcd.tmp."
