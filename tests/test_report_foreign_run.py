"""Runs that MaxText made without us."""

from pathlib import Path

import pytest

from primus_hydra.report.read import read_report, read_steps
from tests.report_runs import log_line, metrics_line, write_log, write_run

FIRST = [0.1, 0.6, 0.002]


def test_two_logs_in_one_folder_are_two_runs_ranked_by_their_medians(tmp_path: Path) -> None:
    write_log(tmp_path / "a.log", [*FIRST, *[0.5] * 9], head="I System Information: Jax Backend: rocm\n")
    write_log(tmp_path / "b.log", [*FIRST, *[0.45] * 9])
    report = read_report([tmp_path])
    assert [(row.point, row.state, row.rank, row.num_steps_measured, row.platform) for row in report.rows] == [
        (f"{tmp_path.name}/b", "foreign", 1, 9, None),
        (f"{tmp_path.name}/a", "foreign", 2, 9, "rocm"),
    ]
    assert [row.tokens_per_second_per_device for row in report.rows] == pytest.approx([1000 / 0.45, 2000], rel=1e-4)


def test_a_metrics_file_is_exact_and_its_log_tells_the_platform(tmp_path: Path) -> None:
    run = tmp_path / "sweep" / "full"
    write_log(run / "train.log", [0.5] * 8, head="Num_devices: 8, shape (8,)\n")
    (run / "anything.jsonl").write_text("".join(metrics_line(step, 0.5004) for step in range(8)), encoding="utf-8")
    (found,) = read_report([tmp_path / "sweep"]).runs
    assert (found.name, found.state, found.result["num_devices"]) == ("full", "foreign", 8)
    assert found.result["step_time_s"]["median"] == 0.5004
    assert [step.step_time_s for step in read_steps(found)] == [0.5004] * 8


def test_parts_that_maxtext_uploads_are_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "metrics"
    folder.mkdir(parents=True)
    for start in (0, 5):
        text = "".join(metrics_line(step, 0.5) for step in range(start, start + 5))
        (folder / f"metrics_step_{start:06}_to_step_{start + 5:06}.txt").write_text(text, encoding="utf-8")
    (run,) = read_report([tmp_path / "run"]).runs
    assert (run.name, run.result["num_steps"]) == ("run", 10)


def test_logs_and_metrics_of_one_name_belong_together(tmp_path: Path) -> None:
    for name, seconds in (("full", 0.5), ("minimal", 0.4)):
        write_log(tmp_path / f"{name}.log", [seconds] * 8)
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(metrics_line(step, seconds) for step in range(8)), encoding="utf-8"
        )
    assert [run.name for run in read_report([tmp_path]).runs] == [
        f"{tmp_path.name}/{name}" for name in ("full", "minimal")
    ]


@pytest.mark.parametrize(
    ("head", "tail", "failure", "reason"),
    [
        ("", log_line(8, 0.5, "nan"), "not_finite_loss", "The loss is not finite at step 8 (it is nan)."),
        (
            "I Config param steps: 20\n",
            "",
            "incomplete",
            "It has 20 steps, and the last in its files is 7.",
        ),
        (
            "",
            "Traceback (most recent call last):\n  File x\nXlaRuntimeError: RESOURCE_EXHAUSTED: no room\n",
            "out_of_memory",
            "Its log shows an exception after step 7: XlaRuntimeError: RESOURCE_EXHAUSTED: no room",
        ),
        (
            "",
            "Traceback (most recent call last):\n  File x\nValueError: no\n",
            "crash",
            "Its log shows an exception after step 7: ValueError: no",
        ),
    ],
)
def test_a_run_whose_files_show_a_failure_is_not_ranked(
    tmp_path: Path, head: str, tail: str, failure: str, reason: str
) -> None:
    write_log(tmp_path / "train.log", [0.5] * 8, head=head, tail=tail)
    (row,) = read_report([tmp_path]).rows
    assert (row.state, row.failure, row.rank, row.reason) == ("foreign", failure, None, reason)


def test_a_run_that_reached_the_last_step_its_log_announces_is_ranked_whatever_was_printed(tmp_path: Path) -> None:
    warning = "Traceback (most recent call last):\n  File x\nImportError: an upload that nobody needs\n"
    write_log(tmp_path / "train.log", [0.5] * 8, head="Config param steps: 8\n", tail=warning)
    (row,) = read_report([tmp_path]).rows
    assert (row.rank, row.failure) == (1, None)


def test_a_log_without_a_step_is_a_failed_run_and_a_log_of_something_else_is_none(tmp_path: Path) -> None:
    write_log(tmp_path / "one" / "train.log", [], head="Config param steps: 8\nValueError\n")
    write_log(tmp_path / "two" / "apt.log", [], head="Setting up libc6\n")
    (run,) = read_report([tmp_path]).runs
    assert (run.name, run.failure, run.reason) == ("one", "no_steps", "No training step is in its files.")


def test_three_steps_are_too_few(tmp_path: Path) -> None:
    write_log(tmp_path / "train.log", [0.5] * 5)
    (row,) = read_report([tmp_path]).rows
    assert row.reason == "Too few steps for a figure: 2 after 3 for the warm-up; 3 are needed."


def test_foreign_runs_and_ours_are_ranked_together(tmp_path: Path) -> None:
    write_run(tmp_path / "ours", "full", 1500)
    write_log(tmp_path / "theirs" / "train.log", [0.5] * 8)
    report = read_report([tmp_path / "ours", tmp_path / "theirs"])
    assert [(row.point, row.rank) for row in report.rows] == [("theirs", 1), ("full", 2)]


def test_a_schedulers_log_beside_run_folders_is_no_run(tmp_path: Path) -> None:
    write_run(tmp_path, "full")
    write_log(tmp_path / "slurm-12.out", [0.5] * 8)
    assert [run.name for run in read_report([tmp_path]).runs] == ["full"]
