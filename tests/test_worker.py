"""The worker against a real trainer program that fails in every way we know."""

import fcntl
import functools
import io
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from primus_hydra import worker
from primus_hydra.atomic_files import list_half_written
from primus_hydra.liveness import is_abandoned
from primus_hydra.redaction import HIDDEN
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError, RunLockedError, read_json
from tests.processes import (
    in_a_process_of_its_own,
    kill_before_change,
    python_starter,
    wait_until_gone,
    wait_until_written,
)
from tests.run_folders import make_ready_fifo, plan_stub_run, read_grandchildren, read_ready

SECRET = "s3cr3t-SENTINEL-value"
StartWorker = Callable[..., subprocess.Popen[str]]
ORDER = '{"stop": "slow", "reason": "It is slower than half of the best."}\n'
NUMBERS = ("step_time_s", "tokens_per_second_per_device", "tflops_per_second_per_device")


def run_stub(path: Path, stub: str = "", **plan: Any) -> tuple[Record, str]:
    """Plan and execute; returns the record and what the console showed."""
    folder = plan_stub_run(path, stub, **plan)
    console = Console(file=io.StringIO(), width=80)
    record = worker.execute(folder, console=console)
    assert record == json.loads(folder.run_json.read_text(encoding="utf-8"))
    assert isinstance(console.file, io.StringIO)
    return record, console.file.getvalue()


@pytest.fixture
def start_worker() -> Iterator[StartWorker]:
    """Start `python -m primus_hydra.worker` on a folder; whatever is left of it is killed at the end."""
    with python_starter() as start:
        yield lambda folder, *arguments, **options: start(
            "-m", "primus_hydra.worker", str(folder.path), *arguments, **options
        )


def test_a_run_that_reaches_its_last_step_is_completed(tmp_path: Path) -> None:
    record, shown = run_stub(tmp_path / "run", "step_s=0.02")
    assert (record["state"], record["failure"], record["exit_code"], record["signal"]) == ("completed", None, 0, None)
    assert record["attempt"] == 1
    assert record["started_at"] <= record["ended_at"]
    assert record["wall_s"] > 0.1
    result = record["result"]
    assert (result["first_step"], result["last_step"], result["num_steps"], result["num_steps_measured"]) == (
        0,
        7,
        8,
        5,
    )
    assert result["step_time_s"]["median"] == 0.02
    assert result["tokens_per_second_per_device"] == pytest.approx(6400)
    assert result["tflops_per_second_per_device"] == pytest.approx(2)
    assert (result["first_loss"], result["final_loss"]) == (10.0, 9.93)
    assert (result["platform"], result["num_devices"]) == ("cpu", 1)
    assert 0 < result["peak_host_memory_gib"] < 1
    assert "step 8/8  loss 9.930" in shown


@pytest.mark.parametrize(
    ("stub", "failure", "reason"),
    [
        ("fail_at=4", "crash", "Exit code 1 after step 3: ValueError: told to fail at step 4"),
        ("exit=7", "crash", "Exit code 7 after step 7."),
        ("oom_at=4", "out_of_memory", "Out of memory after step 3."),
        ("nan_at=2", "not_finite_loss", "The loss is not finite at step 2 (it is nan)."),
        ("nan_at=2 exit=1", "not_finite_loss", "The loss is not finite at step 2 (it is nan)."),
        ("stop_at=5", "incomplete", "Ran out of data after step 4 of 8 steps."),
        ("quit_at=5", "incomplete", "The trainer ended with exit code 0 after step 4 of 8 steps."),
        ("quit_at=0", "no_steps", "The trainer ended with exit code 0, but no steps were recorded."),
        ("empty_batch", "config", "The batch was empty in every step (total_weights is 0): nothing was trained."),
        ("config_error", "config", "MaxText does not accept this configuration: ValueError: 'bogus_key' not in"),
        ("difference", "config", "MaxText would not run the composed configuration: it resolves some keys to other"),
        ("signal_at=3:SIGSEGV", "crash", "Ended by SIGSEGV after step 2."),
        ("signal_at=3:SIGKILL", "crash", "Ended by SIGKILL after step 2."),
    ],
)
def test_every_kind_of_failure_is_told_apart(tmp_path: Path, stub: str, failure: str, reason: str) -> None:
    record, _ = run_stub(tmp_path / "run", stub)
    assert (record["state"], record["failure"]) == ("failed", failure)
    assert record["reason"].startswith(reason)
    assert all(len(line) < 300 for line in record["last_error_lines"])


def test_a_signal_is_named(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "signal_at=0:SIGABRT")
    assert (record["exit_code"], record["signal"]) == (None, "SIGABRT")


def test_a_difference_is_shown_with_its_values(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "difference")
    assert "  steps: composed 5, MaxText would run 7".strip() in [line.strip() for line in record["last_error_lines"]]


def test_maxtexts_list_of_all_keys_is_cut(tmp_path: Path) -> None:
    record, shown = run_stub(tmp_path / "run", "config_error")
    assert any("'bogus_key' not in" in line for line in record["last_error_lines"])
    assert len(shown) < 4000
    assert len((tmp_path / "run" / "train.log").read_text(encoding="utf-8")) > 30_000


def test_a_program_that_does_not_exist_is_a_crash_with_its_name(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    command = read_json(folder.command_json) | {"trainer": ["/nowhere/trainer"]}
    folder.command_json.write_text(json.dumps(command), encoding="utf-8")
    record = worker.execute(folder, console=Console(file=io.StringIO()))
    assert (record["state"], record["failure"]) == ("failed", "crash")
    assert "/nowhere/trainer: No such file or directory" in record["reason"]


def test_a_hung_trainer_that_ignores_sigterm_is_killed_with_all_its_grandchildren(tmp_path: Path) -> None:
    settings = {"hang_after_s": 1.5, "grace_s": 0.3}
    record, _ = run_stub(tmp_path / "run", "hang_at=4 ignore_sigterm grandchildren", run=settings)
    assert (record["state"], record["failure"], record["signal"]) == ("timed_out", "hung", "SIGKILL")
    assert record["result"]["last_step"] == 3
    wait_until_gone(*read_grandchildren(RunFolder(tmp_path / "run")))


def test_grandchildren_do_not_outlive_a_completed_run(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "grandchildren")
    assert record["state"] == "completed"
    wait_until_gone(*read_grandchildren(RunFolder(tmp_path / "run")))


def test_a_run_that_exceeds_its_timeout_is_stopped_although_steps_go_on(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "step_s=0.01", steps=100_000, run={"timeout_s": 1.0})
    assert (record["state"], record["failure"], record["signal"]) == ("timed_out", "timeout", "SIGTERM")
    assert record["result"]["num_steps"] > 3


@pytest.mark.parametrize(("number", "named"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_an_interrupted_worker_ends_the_whole_tree_and_keeps_the_record(
    tmp_path: Path, start_worker: StartWorker, number: int, named: str
) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 grandchildren", env=ready)
    process = start_worker(folder)
    _, pid = read_ready(ready)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    record = folder.read_record()
    assert (record["state"], record["failure"]) == ("interrupted", None)
    assert record["reason"] == f"Interrupted by {named} after step 3."
    assert "interrupted" in output
    wait_until_gone(pid, *read_grandchildren(folder))


def test_a_second_interrupt_does_not_wait_for_the_grace_time(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=0 ignore_sigterm", env=ready, run={"grace_s": 600.0})
    process = start_worker(folder)
    _, pid = read_ready(ready)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert folder.read_record()["state"] == "interrupted"
    wait_until_gone(pid)


def test_nothing_outlives_a_worker_that_is_killed(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 ignore_sigterm grandchildren", env=ready)
    process = start_worker(folder, start_new_session=True)
    _, pid = read_ready(ready)
    assert not is_abandoned(folder.read_record())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    wait_until_gone(pid, *read_grandchildren(folder))
    record = folder.read_record()
    assert record["state"] == "running"
    assert is_abandoned(record)


def test_an_abandoned_folder_can_be_executed_again_and_old_numbers_are_moved_away(
    tmp_path: Path, start_worker: StartWorker
) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4", env=ready)
    process = start_worker(folder)
    reaper_gone = psutil.Process(read_ready(ready)[1]).parent()
    wait_until_written(folder.train_log, "completed step: 3")
    process.kill()
    process.communicate(timeout=30)
    assert reaper_gone is not None
    wait_until_gone(reaper_gone.pid)
    command = read_json(folder.command_json)
    folder.command_json.write_text(json.dumps(command | {"env": {"STUB": "fail_at=0"}}), encoding="utf-8")
    record = worker.execute(folder, console=Console(file=io.StringIO()))
    assert (record["attempt"], record["state"], record["result"]["num_steps"]) == (2, "failed", 0)
    assert all(record["result"][name] is None for name in NUMBERS)
    assert (folder.path / "metrics.jsonl.1").exists()
    assert "completed step: 3" in (folder.path / "train.log.1").read_text(encoding="utf-8")


def test_a_killed_reaper_is_a_crash_and_leaves_no_process(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "grandchildren hang_at=4", env=ready)
    process = start_worker(folder)
    trainer = psutil.Process(read_ready(ready)[1])
    reaper = trainer.parent()
    assert reaper is not None
    reaper.kill()
    process.communicate(timeout=30)
    record = folder.read_record()
    assert (process.returncode, record["state"], record["failure"]) == (1, "failed", "crash")
    assert "the process that watched over it was killed" in record["reason"]
    wait_until_gone(trainer.pid, *read_grandchildren(folder))


def test_two_workers_cannot_execute_one_folder(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4", env=ready)
    first = start_worker(folder)
    read_ready(ready)
    with pytest.raises(RunLockedError, match="is being executed by another worker"):
        worker.execute(folder, console=Console(file=io.StringIO()))
    second = start_worker(folder)
    assert "is being executed by another worker" in second.communicate(timeout=30)[0]
    assert second.returncode == 2
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=30)
    assert folder.read_record()["attempt"] == 1


def test_steps_that_an_evaluation_truncated_away_are_kept(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "step_s=0.01 eval_at=5")
    assert (record["state"], record["result"]["num_steps"], record["resumed_at_step"]) == ("completed", 8, None)


def test_the_log_alone_is_enough_to_see_the_last_step(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "step_s=0.01 no_metrics")
    assert (record["state"], record["result"]["num_steps"], record["result"]["final_loss"]) == ("completed", 8, 9.93)


def test_the_metrics_file_alone_is_enough_too(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", "silent_log")
    assert (record["state"], record["result"]["num_steps"]) == ("completed", 8)


def test_a_resumed_run_says_where_it_went_on_and_warms_up_by_position(tmp_path: Path) -> None:
    record, shown = run_stub(tmp_path / "run", "resume_at=10 step_s=0.01", steps=18)
    assert (record["state"], record["resumed_at_step"]) == ("completed", 10)
    assert (record["result"]["first_step"], record["result"]["num_steps_measured"]) == (10, 5)
    assert "resumed at step 10" in shown


def test_three_steps_are_too_few_for_a_figure(tmp_path: Path) -> None:
    record, _ = run_stub(tmp_path / "run", steps=3)
    assert (record["state"], record["result"]["too_few_steps"]) == ("completed", True)
    assert all(record["result"][name] is None for name in NUMBERS)


def test_garbage_and_endless_lines_hurt_neither_log_nor_console(tmp_path: Path) -> None:
    record, shown = run_stub(tmp_path / "run", "garbage")
    assert record["state"] == "completed"
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert log.count("x") > 3_000_000
    assert "\\xff\\xfe" in log
    assert "[bold]not markup[/bold]" in shown
    assert "downloading 100%" in shown
    assert not set(shown) & {"\x00", "\x01", "\x1b", "\r"}
    assert max(map(len, shown.splitlines())) < 700


def test_no_secret_reaches_a_file_or_the_console_and_the_trainer_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)
    record, shown = run_stub(tmp_path / "run", "secret=MY_API_KEY fail_at=1")
    trainers_own = tmp_path / "run" / "stub_env.json"
    assert json.loads(trainers_own.read_text(encoding="utf-8"))["MY_API_KEY"] == SECRET
    trainers_own.unlink()
    assert "the secret is <hidden>" in shown
    assert SECRET not in shown + json.dumps(record)
    for file in filter(Path.is_file, (tmp_path / "run").rglob("*")):
        assert SECRET not in file.read_text(encoding="utf-8"), file


def test_the_trainers_environment_is_ours_plus_the_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWANTED", "1")
    monkeypatch.setenv("KEPT", "2")
    run_stub(tmp_path / "run", env={"XLA_FLAGS": "--a=b"})
    env = json.loads((tmp_path / "run" / "stub_env.json").read_text(encoding="utf-8"))
    assert "UNWANTED" not in env
    assert (env["KEPT"], env["XLA_FLAGS"]) == ("2", "--a=b")


@pytest.mark.parametrize(
    ("private", "in_log", "on_console"),
    [
        ({}, True, False),
        ({"file_sink_level": "INFO", "stderr_sink_level": "DEBUG"}, False, True),
        ({"sink_level": "DEBUG"}, True, True),
    ],
)
def test_sink_levels_choose_what_is_logged_and_shown(
    tmp_path: Path, private: dict[str, str], in_log: bool, on_console: bool
) -> None:
    _, shown = run_stub(tmp_path / "run", private=private)
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert ("Config param steps" in log, "Config param steps" in shown) == (in_log, on_console)
    assert "completed step" not in shown


def test_an_unknown_sink_level_is_refused_before_anything_starts(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run", private={"sink_level": "LOUD"})
    with pytest.raises(RecordError, match="LOUD"):
        worker.execute(folder, console=Console(file=io.StringIO()))


def test_a_folder_without_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="does not exist"):
        worker.execute(RunFolder(tmp_path), console=Console(file=io.StringIO()))


def test_a_half_written_record_is_refused(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    folder.run_json.write_text('{"state": "plan', encoding="utf-8")
    with pytest.raises(RecordError, match="half-written"):
        worker.execute(folder, console=Console(file=io.StringIO()))


def test_an_incomplete_plan_is_refused_with_all_that_is_missing(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    record = folder.read_record()
    del record["versions"], record["settings"]["run"]["grace_s"]
    folder.write_record(record)
    with pytest.raises(RecordError, match="grace_s is missing") as caught:
        worker.execute(folder, console=Console(file=io.StringIO()))
    assert "run.json: versions is missing; it must be an object." in str(caught.value)
    assert folder.read_record()["state"] == "planned"


WRONG: dict[tuple[str, str], list[Any]] = {
    ("command.json", "env"): [[], None, {"A": 1}, {"A=B": "1"}, {"A": "\0"}],
    ("command.json", "maxtext_args"): [None, "x"],
    ("command.json", "unset_env"): [None, {}],
    ("command.json", "trainer"): [[], "python", [1]],
    ("run.json", "composed"): [[], {"steps": 3}, {"log_period": {"value": "often"}}],
    ("run.json", "versions"): [[], None],
    ("run.json", "settings"): [[], None, "x"],
    ("run.json", "private"): [[], None],
    ("run.json", "name"): [[], None],
    ("run.json", "warnings"): [None, [1]],
    ("run.json", "attempt"): ["x", None, -1, True],
}


@pytest.mark.parametrize(
    ("file", "field", "value"), [(*place, value) for place, values in WRONG.items() for value in values]
)
def test_a_field_of_a_wrong_type_is_named_and_nothing_starts(
    tmp_path: Path, file: str, field: str, value: object
) -> None:
    folder = plan_stub_run(tmp_path / "run")
    path = folder.path / file
    path.write_text(json.dumps(read_json(path) | {field: value}), encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(RunFolderError, match=rf"{file}: {field} is .*; it must be "):
        worker.execute(folder, console=Console(file=io.StringIO()))
    assert path.read_bytes() == before
    assert not folder.train_log.exists()


@pytest.mark.parametrize("name", ["grace_s", "timeout_s", "hang_after_s", "warmup_steps"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1", '"5"', "true", "null", "[]"])
def test_a_limit_that_is_no_time_is_refused(tmp_path: Path, name: str, value: str) -> None:
    folder = plan_stub_run(tmp_path / "run")
    record = folder.read_record()
    record["settings"]["run"][name] = "HERE"
    folder.run_json.write_text(json.dumps(record).replace('"HERE"', value), encoding="utf-8")
    if value == "null" and name in ("timeout_s", "hang_after_s"):  # no limit
        assert worker.execute(folder, console=Console(file=io.StringIO()))["state"] == "completed"
        return
    with pytest.raises(RunFolderError, match=f"settings.run.{name} is "):
        worker.execute(folder, console=Console(file=io.StringIO()))
    assert folder.read_record()["state"] == "planned"


def test_all_wrong_fields_are_told_at_once(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run", private={"sink_level": "LOUD"}, run={"grace_s": None})
    command = read_json(folder.command_json) | {"env": None}
    folder.command_json.write_text(json.dumps(command), encoding="utf-8")
    process = start_worker(folder)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    for text in ("settings.run.grace_s is None", "env is None", "sink_level is LOUD"):
        assert text in output
    assert "Traceback" not in output


def test_a_folder_that_does_not_exist_is_told_as_that(tmp_path: Path, start_worker: StartWorker) -> None:
    process = start_worker(RunFolder(tmp_path / "nowhere"))
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (2, f"There is no run folder {tmp_path}/nowhere.\n")


def test_a_plan_that_another_start_replaced_is_not_executed(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    mine = folder.read_record()["fingerprint"]
    plan_stub_run(tmp_path / "run", steps=9)
    with pytest.raises(RunFolderError, match="nother start has replaced the plan in this folder"):
        worker.execute(folder, console=Console(file=io.StringIO()), expect_fingerprint=mine)
    assert (folder.read_record()["state"], folder.train_log.exists()) == ("planned", False)
    theirs = folder.read_record()["fingerprint"]
    done = worker.execute(folder, console=Console(file=io.StringIO()), expect_fingerprint=theirs)
    assert (done["state"], done["result"]["num_steps"]) == ("completed", 9)


def test_a_full_disk_at_the_start_leaves_the_plan_for_a_retry(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run")
    before = folder.run_json.read_bytes()
    # Room for the record, none for the reserve: the file size limit stands for the full disk.
    limit = (32_768, 32_768)
    process = start_worker(folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "cannot be written: File too large. Nothing was started" in output
    assert "Traceback" not in output
    assert (folder.run_json.read_bytes(), folder.reserve_file.exists()) == (before, False)
    assert worker.execute(folder, console=Console(file=io.StringIO()))["state"] == "completed"


def test_a_log_that_cannot_be_created_leaves_the_plan_for_a_retry(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    before = folder.run_json.read_bytes()
    folder.train_log.symlink_to(tmp_path / "nowhere" / "train.log")
    with pytest.raises(RunFolderError, match="cannot be written"):
        worker.execute(folder, console=Console(file=io.StringIO()))
    assert folder.run_json.read_bytes() == before


@pytest.mark.parametrize("word", ["completed", "training", "stub_trainer.py", "interrupted"])
def test_a_secret_that_is_an_ordinary_word_garbles_no_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("API_KEY", word)
    record, _ = run_stub(tmp_path / f"{word}_run", "no_metrics step_s=0.01")
    assert (record["state"], record["result"]["num_steps"]) == ("completed", 8)
    assert worker.exit_code(record) == 0
    assert record["composed"]["metrics_file"]["value"] == str(tmp_path / f"{word}_run" / "metrics.jsonl")
    assert HIDDEN not in json.dumps(record)


def test_a_secret_in_our_own_words_about_the_end_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    folder = plan_stub_run(tmp_path / "run")
    command = read_json(folder.command_json) | {"trainer": [f"./{SECRET}"]}
    folder.command_json.write_text(json.dumps(command), encoding="utf-8")
    record = worker.execute(folder, console=Console(file=io.StringIO()))
    assert "./<hidden>: No such file or directory" in record["reason"]


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-1", "null", '"fast"', "1e308", "0"])
def test_a_step_time_that_is_none_is_not_scored_and_ends_no_run(tmp_path: Path, figure: str) -> None:
    stub = f'silent_log metrics={{"perf/step_time_seconds":{figure}}}'
    record, shown = run_stub(tmp_path / "run", stub)
    assert (record["state"], record["result"]["num_steps"]) == ("completed", 8)
    assert "step 8/8" in shown
    if figure != "1e308":
        assert record["result"]["too_few_steps"]
        assert all(record["result"][name] is None for name in NUMBERS)


@pytest.mark.parametrize("loss", ["NaN", "null", '"low"'])
def test_a_loss_that_is_no_number_is_not_a_completed_run(tmp_path: Path, loss: str) -> None:
    record, _ = run_stub(tmp_path / "run", f'silent_log metrics={{"learning/loss":{loss}}}')
    assert (record["failure"], record["result"]["num_steps"]) == ("not_finite_loss", 8)


@pytest.mark.parametrize(
    "files",
    [
        '{"versions":null,"keys":null,"num_devices":"x","peak_device_memory_bytes":"x","resumed_at_step":[]}',
        '{"versions":[],"keys":[],"compile_time_s":"x","device_kind":3}',
        '{"keys":{"steps":Infinity},"compile_time_s":NaN}',
        "[",
    ],
)
def test_a_trainers_own_files_may_hold_anything(tmp_path: Path, files: str) -> None:
    record, _ = run_stub(tmp_path / "run", f"files={files}")
    assert (record["state"], record["result"]["num_steps"], record["resumed_at_step"]) == ("completed", 8, None)
    assert record["result"]["compile_time_s"] is None


class BrokenFile(io.StringIO):
    """A console that fails in a way nobody expects."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        if "Num_devices" in text:
            raise self._error
        return super().write(text)


class HauntedError(BaseException):
    """What even a display that forgives everything lets through."""


def test_a_console_that_fails_in_an_unexpected_way_does_not_end_the_run(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    broken = Console(file=BrokenFile(RuntimeError("the console is broken")))
    assert worker.execute(folder, console=broken)["state"] == "completed"


def test_a_failure_of_our_own_ends_the_trainer_and_is_recorded(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 grandchildren")
    with pytest.raises(HauntedError):
        worker.execute(folder, console=Console(file=BrokenFile(HauntedError("by a ghost"))))
    record = folder.read_record()
    assert (record["state"], record["failure"]) == ("failed", "crash")
    assert "the worker itself failed (HauntedError: by a ghost)" in record["reason"]


def test_a_flood_of_short_lines_is_logged_and_shown_whole(tmp_path: Path) -> None:
    record, shown = run_stub(tmp_path / "run", "flood=2")
    assert record["state"] == "completed"
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert log.count("one of many short lines\n") == shown.count("one of many short lines\n") == 2 * 41_666


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    folder.path.chmod(0o500)
    with pytest.raises(RunFolderError, match="cannot be written: Permission denied"):
        worker.execute(folder, console=Console(file=io.StringIO()))


def test_a_log_that_cannot_grow_does_not_stop_the_run(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run", "garbage step_s=0.01")
    # The file size limit stands for a full disk: writing train.log beyond 1 MB fails with an OSError.
    limit = (1_000_000, 1_000_000)
    process = start_worker(folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    output, _ = process.communicate(timeout=60)
    record = folder.read_record()
    assert (process.returncode, record["state"]) == (0, "completed")
    assert record["warnings"] == ["train.log is incomplete: File too large."]
    assert "train.log is incomplete: File too large. The run goes on." in output


def test_a_closed_console_does_not_stop_the_run(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run", "step_s=0.01")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        process = subprocess.run(
            [sys.executable, "-m", "primus_hydra.worker", str(folder.path)],
            stdout=stream,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            timeout=60,
            check=False,
        )
    assert folder.read_record()["state"] == "completed"
    assert process.returncode == 0


def test_the_worker_imports_neither_jax_nor_maxtext_nor_hydra() -> None:
    code = "import primus_hydra.worker, sys; print({'jax', 'maxtext', 'hydra', 'pandas'} & set(sys.modules))"
    assert (
        subprocess.check_output([sys.executable, "-c", code], text=True, cwd=Path(__file__).parent.parent) == "set()\n"
    )


def test_a_folder_that_was_moved_is_not_executed(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "here")
    moved = RunFolder(tmp_path / "there")
    folder.path.rename(moved.path)
    with pytest.raises(RunFolderError, match=r"was made at .*here and lies at .*there now"):
        worker.execute(moved, console=Console(file=io.StringIO()))


def give_order(process: subprocess.Popen[str]) -> None:
    """Stop a worker as its parent does, and keep the pipe open."""
    assert process.stdin is not None
    process.stdin.write(ORDER)
    process.stdin.flush()


def wait_silent(process: subprocess.Popen[str]) -> str:
    """What the worker printed until its end, the pipe to it still open."""
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait(timeout=30)
    return output


def test_under_a_parent_a_run_is_silent_and_recorded(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run", "garbage")
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    assert (wait_silent(process), process.returncode) == ("", 0)
    assert folder.read_record()["state"] == "completed"
    assert "completed step: 7" in folder.train_log.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", [0, 4])
def test_a_parents_order_skips_the_run_and_keeps_its_figures(
    tmp_path: Path, start_worker: StartWorker, step: int
) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(
        tmp_path / "run", f"step_s=0.01 hang_at={step} grandchildren", env=ready, run={"warmup_steps": 1}
    )
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    _, pid = read_ready(ready)
    give_order(process)
    assert (wait_silent(process), process.returncode) == ("", 0)
    record = folder.read_record()
    assert (record["state"], record["failure"]) == ("skipped", "slow")
    assert (record["reason"], record["last_error_lines"]) == ("It is slower than half of the best.", [])
    assert record["result"]["num_steps"] == step
    assert (record["result"]["tokens_per_second_per_device"] is not None) == (step == 4)
    wait_until_gone(pid, *read_grandchildren(folder))


def test_an_order_that_is_there_before_the_trainer_is_obeyed(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run", "hang_at=0", run={"grace_s": 600.0})
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    give_order(process)
    assert (wait_silent(process), process.returncode) == ("", 0)
    record = folder.read_record()
    assert (record["state"], record["signal"], record["result"]["num_steps"]) == ("skipped", "SIGTERM", 0)


def test_a_trainer_that_ignores_its_parents_order_is_killed(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 ignore_sigterm", env=ready, run={"grace_s": 0.3})
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    _, pid = read_ready(ready)
    give_order(process)
    wait_silent(process)
    record = folder.read_record()
    assert (record["state"], record["signal"]) == ("skipped", "SIGKILL")
    wait_until_gone(pid)


def test_a_run_ends_when_its_parent_dies(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 grandchildren", env=ready)
    code = (
        "import subprocess, sys; "
        "print(subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True).pid, flush=True); "
        "import signal; signal.pause()"
    )
    command = [sys.executable, "-m", "primus_hydra.worker", str(folder.path), "--under-parent"]
    parent = subprocess.Popen([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker_pid = int(parent.stdout.readline())
    _, pid = read_ready(ready)
    parent.kill()
    parent.communicate(timeout=30)
    wait_until_gone(worker_pid, pid, *read_grandchildren(folder))
    record = folder.read_record()
    assert (record["state"], record["failure"]) == ("interrupted", None)
    assert record["reason"] == "Interrupted after step 3: the program that started it died."


def test_an_order_counts_more_than_the_death_that_follows(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4 ignore_sigterm", env=ready, run={"grace_s": 0.5})
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    read_ready(ready)
    process.communicate(ORDER, timeout=30)
    assert folder.read_record()["state"] == "skipped"


def test_sigterm_interrupts_a_run_under_a_parent(tmp_path: Path, start_worker: StartWorker) -> None:
    ready = make_ready_fifo(tmp_path / "ready")
    folder = plan_stub_run(tmp_path / "run", "hang_at=4", env=ready)
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    read_ready(ready)
    process.send_signal(signal.SIGTERM)
    assert (wait_silent(process), process.returncode) == ("", 130)
    assert folder.read_record()["reason"] == "Interrupted by SIGTERM after step 3."


def test_a_parent_that_never_reads_holds_nobody_up(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run", "flood=2")
    process = start_worker(folder, "--under-parent", stdin=subprocess.PIPE)
    process.wait(timeout=60)
    assert folder.read_record()["state"] == "completed"


def test_a_worker_under_a_parent_needs_a_pipe(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run")
    process = start_worker(folder, "--under-parent")
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--under-parent needs a pipe as standard input" in output
    assert folder.read_record()["state"] == "planned"


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--unknown"], ["a", "--expect"]])
def test_a_wrong_command_line_is_told_with_the_usage(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "primus_hydra.worker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False)
    assert done.returncode == 2
    assert "usage: python -m primus_hydra.worker" in done.stderr


def test_the_expected_plan_is_executed_and_no_other(tmp_path: Path, start_worker: StartWorker) -> None:
    folder = plan_stub_run(tmp_path / "run")
    other = start_worker(folder, "--expect", "0" * 64)
    assert "Another start has replaced the plan" in other.communicate(timeout=30)[0]
    assert (other.returncode, folder.read_record()["state"]) == (2, "planned")
    same = start_worker(folder, "--expect", folder.read_record()["fingerprint"])
    same.communicate(timeout=30)
    assert (same.returncode, folder.read_record()["state"]) == (0, "completed")


@pytest.mark.parametrize(("state", "text"), [("planning", "was not written to its end"), ("invalid", "was refused")])
def test_a_plan_that_is_none_is_not_executed(tmp_path: Path, state: str, text: str) -> None:
    folder = plan_stub_run(tmp_path / "run")
    folder.write_record(folder.read_record() | {"state": state})
    with pytest.raises(RecordError, match=text):
        worker.execute(folder, console=Console(file=io.StringIO()))
    assert folder.read_record()["state"] == state


@pytest.mark.parametrize(
    ("stub", "run", "state"),
    [
        ("exit=3", {}, "failed"),
        ("hang_at=4", {"hang_after_s": 1.0}, "timed_out"),
        ("step_s=0.05", {"timeout_s": 0.1}, "timed_out"),
    ],
)
def test_a_folder_whose_attempt_failed_is_executed_again_without_planning(
    tmp_path: Path, stub: str, run: dict[str, Any], state: str
) -> None:
    folder = plan_stub_run(tmp_path / "run", stub, run=run)
    first = worker.execute(folder, console=Console(file=io.StringIO()))
    assert (first["state"], first["attempt"]) == (state, 1)
    command = read_json(folder.command_json)
    folder.command_json.write_text(json.dumps(command | {"env": {"STUB": ""}}), encoding="utf-8")
    second = worker.execute(folder, console=Console(file=io.StringIO()))
    assert (second["attempt"], second["fingerprint"]) == (2, first["fingerprint"])
    assert read_json(folder.record_of_attempt(1)) == first


def test_a_signal_that_comes_too_late_for_the_run_still_ends_the_program(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "run")
    code = """
import os, signal, sys
from pathlib import Path
from primus_hydra import worker

def late(event, arguments):
    # The record is replaced for the second time: with the end of the run.
    if event == "os.rename" and str(arguments[1]).endswith("/run.json"):
        seen.append(event)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

seen = []
sys.addaudithook(late)
sys.exit(worker.main([sys.argv[1]]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder.path)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        check=False,
    )
    assert folder.read_record()["state"] == "completed"
    assert done.returncode == -signal.SIGTERM


@pytest.mark.slow
def test_a_worker_that_is_killed_at_any_point_loses_no_record_and_its_folder_runs_again(tmp_path: Path) -> None:
    states = set()
    for number in itertools.count(1):
        folder = plan_stub_run(tmp_path / str(number), steps=4)
        failed = folder.read_record() | {"state": "failed", "attempt": 1, "reason": "the first attempt"}
        folder.write_record(failed)
        folder.train_log.write_text("the first log", encoding="utf-8")
        work = functools.partial(worker.execute, folder, console=Console(quiet=True))
        done = in_a_process_of_its_own(work, kill_before_change(number, folder.path))
        with folder.lock_file.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the reaper holds it until nothing of the run is left
        left = folder.read_record()
        states.add(left["state"])
        assert left == failed or (left["attempt"] == 2 and read_json(folder.record_of_attempt(1)) == failed)
        again = worker.execute(folder, console=Console(quiet=True))
        assert (again["state"], again["attempt"], again["result"]["num_steps"]) == ("completed", left["attempt"] + 1, 4)
        assert read_json(folder.record_of_attempt(left["attempt"])) == left
        assert (folder.path / "train.log.1").read_text(encoding="utf-8") == "the first log"
        assert not folder.reserve_file.exists()
        assert not list(list_half_written(folder.path))
        if done == 0:
            break
        assert done == -signal.SIGKILL
    assert states == {"failed", "running", "completed"}
