"""From folders to a report: whatever state they are in."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.liveness import this_worker
from primus_hydra.own_command import own_command
from primus_hydra.report.model import Report, Run
from primus_hydra.report.ranking import describe_ranking
from primus_hydra.report.read import read_report, read_steps
from tests.report_runs import log_line, metrics_line, write_run


def read_one(folder: Path) -> Run:
    (run,) = read_report([folder]).runs
    return run


def states(report: Report) -> dict[str, str]:
    return {run.name: run.state for run in report.runs}


def test_runs_name_what_differs_and_nothing_else(tmp_path: Path) -> None:
    write_run(tmp_path, "full", overrides=["remat_policy=full", "steps=8", "sweep.dir=here"])
    write_run(tmp_path, "minimal", 1200, overrides=["remat_policy=minimal", "steps=8", "sweep.dir=there"])
    rows = read_report([tmp_path]).rows
    assert [(row.differs, row.rank) for row in rows] == [("remat_policy=minimal", 1), ("remat_policy=full", 2)]


def test_a_run_of_unknown_overrides_changes_nothing_about_the_others(tmp_path: Path) -> None:
    write_run(tmp_path, "full")
    write_run(tmp_path, "minimal")
    write_run(tmp_path, "zzz", overrides=None)
    assert [run.differs for run in read_report([tmp_path]).runs] == ["remat_policy=full", "remat_policy=minimal", "zzz"]


@pytest.mark.parametrize("text", ["", '{"state": "comp', "[]", "{}", '{"state": 3}'])
def test_a_broken_record_is_unreadable_and_hides_no_other_run(tmp_path: Path, text: str) -> None:
    write_run(tmp_path, "good")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text(text, encoding="utf-8")
    good, broken = read_report([tmp_path]).rows
    assert (good.point, good.rank) == ("good", 1)
    assert (broken.point, broken.state, broken.rank) == ("broken", "unreadable", None)
    assert "run.json" in broken.reason


def test_a_run_folder_whose_record_is_lost_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "command.json").write_text("{}", encoding="utf-8")
    assert states(read_report([tmp_path])) == {"lost": "unreadable"}


@pytest.mark.parametrize(
    "changes",
    [
        *({"overrides": None}, {"overrides": 3}, {"overrides": [1, []]}, {"repeat": "x"}, {"repeat": 0}),
        *({"result": None}, {"result": []}, {"result": "x"}, {"result": {"step_time_s": 3}}, {"composed": [1]}),
        *({"failure": []}, {"reason": None}, {"state": "running", "worker": {"pid": "x"}}, {"settings": {"sweep": 3}}),
        *({"versions": {"jax": 3}}, {"composed": {"steps": 3}}, {"choices": 3}, {"reason": "\ud800 half a letter"}),
    ],
)
def test_fields_of_wrong_types_do_not_end_the_report(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_run(tmp_path, "odd", **changes)
    run = read_one(tmp_path)
    json.dumps([run.reason, *run.overrides], ensure_ascii=False).encode()
    assert (run.repeat, run.point) == (1, "odd")


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1.0, "fast", True, [], {}, None])
def test_a_figure_that_is_none_is_none(tmp_path: Path, figure: object) -> None:
    write_run(tmp_path, "odd", tokens_per_second_per_device=figure, final_loss=figure if figure != -1.0 else None)
    result = read_one(tmp_path).result
    assert (result["tokens_per_second_per_device"], result["final_loss"]) == (None, None)


def test_too_few_steps_have_no_figures_whatever_the_record_says(tmp_path: Path) -> None:
    write_run(tmp_path, "short", 9000, too_few_steps=True)
    result = read_one(tmp_path).result
    assert (result["tokens_per_second_per_device"], result["step_time_s"], result["final_loss"]) == (None, None, 4.0)


def test_a_run_goes_on_or_its_worker_is_dead(tmp_path: Path) -> None:
    write_run(tmp_path, "alive", state="running", worker=this_worker(), result=None)
    write_run(tmp_path, "dead", state="running", worker=this_worker() | {"boot_id": "another boot"}, result=None)
    assert states(read_report([tmp_path])) == {"alive": "running", "dead": "abandoned"}


def test_repeats_are_one_point_where_the_record_agrees_or_is_lost(tmp_path: Path) -> None:
    write_run(tmp_path, "0001-a", repeat=1)
    write_run(tmp_path, "0001-a-repeat2", repeat=2)
    (tmp_path / "0001-a-repeat3").mkdir()
    (tmp_path / "0001-a-repeat3" / "run.json").write_text("{", encoding="utf-8")
    write_run(tmp_path, "mine-repeat2", repeat=1)
    found = {run.name: (run.point, run.repeat) for run in read_report([tmp_path]).runs}
    assert found == {
        "0001-a": ("0001-a", 1),
        "0001-a-repeat2": ("0001-a", 2),
        "0001-a-repeat3": ("0001-a", 3),
        "mine-repeat2": ("mine-repeat2", 1),
    }


def test_several_folders_and_single_runs_are_one_report(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "full", 1000)
    write_run(tmp_path / "b", "full", 3000)
    single = write_run(tmp_path / "c", "minimal", 2000)
    write_run(tmp_path / "c", "unasked", 9000)
    report = read_report([tmp_path / "a", tmp_path / "b", single])
    assert [(row.sweep, row.point, row.rank) for row in report.rows] == [
        ("b", "full", 1),
        ("c", "minimal", 2),
        ("a", "full", 3),
    ]


def test_a_folder_that_is_given_twice_counts_once_and_equal_names_are_told_apart(tmp_path: Path) -> None:
    run = write_run(tmp_path / "x" / "sweep", "full")
    write_run(tmp_path / "y" / "sweep", "full")
    report = read_report([run.parent, tmp_path / "y" / "sweep", run])
    assert [run.sweep for run in report.runs] == [str(tmp_path / "x" / "sweep"), str(tmp_path / "y" / "sweep")]


def test_the_sweeps_own_objective_and_direction_are_taken(tmp_path: Path) -> None:
    sweep = {"objective": ["final_loss", "step_time_s"], "direction": "maximize"}
    write_run(tmp_path, "a", final_loss=4.0, settings={"sweep": sweep})
    write_run(tmp_path, "b", 9000, final_loss=3.0, settings={"sweep": sweep})
    own, asked = read_report([tmp_path]), read_report([tmp_path], "tokens_per_second_per_device")
    assert (own.objective.name, own.objective.maximize, own.rows[0].point) == ("final_loss", True, "a")
    assert (asked.objective.maximize, asked.rows[0].point, asked.problems) == (True, "b", ())


def test_sweeps_with_different_objectives_are_told(tmp_path: Path) -> None:
    write_run(tmp_path, "a", settings={"sweep": {"objective": ["final_loss"]}})
    write_run(tmp_path, "b", settings={"sweep": {"objective": ["of the future"]}})
    report = read_report([tmp_path])
    assert report.objective.name == "final_loss"
    assert "(final_loss, of the future); this report ranks by final loss" in report.problems[0]


def test_an_objective_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    with pytest.raises(KeyError):
        read_report([tmp_path], "speed")


def test_folders_without_anything_are_told_with_a_hint(tmp_path: Path) -> None:
    write_run(tmp_path / "outputs" / "sweep", "full")
    (tmp_path / "empty").mkdir()
    report = read_report([tmp_path / "outputs", tmp_path / "empty", tmp_path / "nowhere"])
    assert (report.runs, len(report.empty_folders)) == ((), 3)
    outputs, empty, nowhere = report.problems
    assert outputs.endswith(f"Name the folders inside it, for example {tmp_path / 'outputs' / 'sweep'}.")
    assert "holds no run folders" in empty
    assert "No such file or directory" in nowhere


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_hides_no_other_run(tmp_path: Path) -> None:
    write_run(tmp_path, "good")
    closed = write_run(tmp_path, "closed")
    closed.chmod(0)
    report = read_report([tmp_path])
    closed.chmod(0o755)
    assert states(report) == {"good": "completed"}
    assert "closed cannot be read: Permission denied" in report.problems[0]


def test_a_folder_name_that_is_no_text_is_shown_escaped(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "x")
    folder.rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")))
    assert read_one(tmp_path).name == "\\xff"


def test_what_is_known_beside_the_record_is_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a b", composed={"steps": {"value": 8, "origin": "x"}}, versions={"jax": "0.12"})
    command = {"env": {"XLA_FLAGS": "--xla_a=1", "N": 3}, "trainer": ["python", "mine.py"]}
    (folder / "command.json").write_text(json.dumps(command), encoding="utf-8")
    (folder / "replay.yaml").write_text("", encoding="utf-8")
    run = read_one(tmp_path)
    assert (run.composed, run.versions, run.environment) == ({"steps": 8}, {"jax": "0.12"}, {"XLA_FLAGS": "--xla_a=1"})
    assert run.trainer == ("python", "mine.py")
    assert run.command == own_command("primus_hydra", "--config-dir", str(folder), "--config-name", "replay")


def test_steps_are_exact_and_the_log_fills_what_was_truncated_away(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", num_steps=3)
    (folder / "metrics.jsonl").write_text(
        f'{{"eval/avg_loss": 1.0}}\nrubbish\n{metrics_line(1, 0.51239)}{metrics_line(2, 0.6, float("nan"))}{{"step": 3',
        encoding="utf-8",
    )
    (folder / "train.log").write_bytes(
        b"\xff\xfe\n" + f"{log_line(0, 0.4)}{log_line(1, 0.512)}completed step: 9, sec".encode()
    )
    (folder / "metrics.jsonl.1").write_text(metrics_line(7, 9.0), encoding="utf-8")
    steps = read_steps(read_one(tmp_path))
    assert [(step.step, step.step_time_s, step.loss) for step in steps] == [
        (0, 0.4, 5.0),
        (1, 0.51239, 5.0),
        (2, 0.6, None),
    ]


@pytest.mark.parametrize(("state", "attempt"), [("planned", 1), ("planned", None), ("planning", 0), ("invalid", 0)])
def test_a_run_that_has_not_begun_has_no_steps_whatever_an_earlier_attempt_left(
    tmp_path: Path, state: str, attempt: int | None
) -> None:
    folder = write_run(tmp_path, "a", state=state, attempt=attempt, result=None)
    (folder / "metrics.jsonl").write_text(metrics_line(7, 9.0), encoding="utf-8")
    run = read_one(tmp_path)
    assert (read_steps(run), run.state) == ((), state)


def test_a_first_plan_with_steps_was_executed_without_us(tmp_path: Path) -> None:
    plan: dict[str, Any] = {"state": "planned", "attempt": 0, "result": None, "composed": {"steps": {"value": 8}}}
    plan["settings"] = {"run": {"warmup_steps": 4}}
    full, half = write_run(tmp_path, "full", **plan), write_run(tmp_path, "half", **plan)
    write_run(tmp_path, "untouched", **plan)
    for folder, count in ((full, 8), (half, 5)):
        (folder / "metrics.jsonl").write_text("".join(metrics_line(step, 0.5) for step in range(count)))
    (full / "metrics.jsonl.1").write_text(metrics_line(9, 9.0), encoding="utf-8")
    report = read_report([tmp_path])
    rows = {row.point: (row.state, row.failure, row.rank, row.num_steps_measured) for row in report.rows}
    assert rows == {
        "full": ("foreign", None, 1, 4),
        "half": ("foreign", "incomplete", None, 1),
        "untouched": ("planned", None, None, None),
    }
    assert "nothing proves that they ended well" in describe_ranking(report)
    reasons = {run.name: run.reason for run in report.runs}
    assert reasons["full"] == "Its command.sh was run outside primus_hydra, which has no record of how that ended."
    assert reasons["half"].endswith("It has 8 steps, and the last in its files is 4.")


def test_a_running_run_has_the_steps_so_far_and_one_without_files_none(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", state="running", worker=this_worker(), result=None)
    assert read_steps(read_one(tmp_path)) == ()
    (folder / "metrics.jsonl").write_text(metrics_line(0, 0.5), encoding="utf-8")
    assert len(read_steps(read_one(tmp_path))) == 1


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("metrics.jsonl", "".join(metrics_line(step, 0.5) for step in range(6)), "step 6 of 8, 2,000 tokens/s/device"),
        ("train.log", f"{log_line(0, 0.5)}", "step 1 of 8"),
    ],
)
def test_a_running_run_tells_how_far_it_has_come(tmp_path: Path, name: str, text: str, told: str) -> None:
    going: dict[str, Any] = {"state": "running", "worker": this_worker(), "result": None}
    folder = write_run(tmp_path, "a", composed={"steps": {"value": 8}}, **going)
    (folder / name).write_text(text, encoding="utf-8")
    (row,) = read_report([tmp_path]).rows
    assert (row.reason, row.rank) == (f"{told} so far", None)


def test_the_way_to_a_folder_may_lead_back(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a")
    (tmp_path / "b").mkdir()
    report = read_report([tmp_path / "b" / ".."])
    assert (report.folders, report.runs[0].folder) == ((tmp_path.resolve(),), folder.resolve())
