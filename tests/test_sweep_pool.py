"""The pool over real workers and a real trainer program, with real signals."""

import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from primus_hydra.liveness import is_abandoned
from primus_hydra.objective import OBJECTIVES
from primus_hydra.progress import Voice
from primus_hydra.runs import Record, RunFolder, read_json
from primus_hydra.sweep.job import Job, Policy
from primus_hydra.sweep.live import SweepView
from primus_hydra.sweep.pool import Ended, run_jobs
from primus_hydra.sweep.slots import HIP, ROCR, Slot
from primus_hydra.sweep.worker_process import WorkerProcess
from tests.processes import python_starter, wait_until_gone
from tests.run_folders import make_ready_fifo, plan_stub_run, read_grandchildren, read_ready

TOKENS = OBJECTIVES["tokens_per_second_per_device"]
FASTEST: Record = {
    "state": "completed",
    "wall_s": 9.0,
    "result": {"tokens_per_second_per_device": 6400.0, "step_time_s": {"median": 0.02}},
}
Sweep = Callable[..., subprocess.Popen[str]]


def make_job(folder: RunFolder, **options: Any) -> Job:
    return Job(
        folder=folder, fingerprint=folder.read_record()["fingerprint"], differs=f"point {folder.path.name}", **options
    )


def run(
    *folders: RunFolder,
    num_slots: int = 1,
    completed: tuple[tuple[str, Record], ...] = (),
    **policy: Any,
) -> tuple[Ended, list[str]]:
    """Run folders as a sweep in this process; also returns the lines that a person saw, their durations as 0 s."""
    console = Console(file=io.StringIO(), width=200)
    with SweepView(Voice(console)) as view:
        ended = run_jobs(
            [make_job(folder) for folder in folders],
            slots=[Slot()] * num_slots,
            policy=Policy(objective=TOKENS, **policy),
            view=view,
            completed=completed,
        )
    assert isinstance(console.file, io.StringIO)
    return ended, [re.sub(r"after \d+s:", "after 0s:", line) for line in console.file.getvalue().splitlines()]


@pytest.fixture
def start_sweep() -> Iterator[Sweep]:
    """Start a parent of its own on run folders; whatever is left of it is killed at the end."""
    program = Path(__file__).parent / "children" / "run_jobs.py"
    with python_starter() as start:

        def start_jobs(*folders: RunFolder, num_slots: int = 2, retries: int = 0) -> subprocess.Popen[str]:
            return start(str(program), str(num_slots), str(retries), *(str(folder.path) for folder in folders))

        yield start_jobs


def read_end(process: subprocess.Popen[str]) -> tuple[dict[str, Any], list[str]]:
    """What a parent says at its end, and the lines before."""
    out, _ = process.communicate(timeout=60)
    *lines, last = out.splitlines()
    assert last.startswith("{"), out
    return json.loads(last), lines


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """The parent's next line that holds these words."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}")


def plan_hanging(path: Path, stub: str = "hang_at=4", **plan: Any) -> tuple[RunFolder, Mapping[str, str]]:
    """A run that never ends by itself, and the way to learn that it hangs."""
    env = make_ready_fifo(path.with_suffix(".fifo"))
    return plan_stub_run(path, stub, env=env, **plan), env


def state(folder: RunFolder) -> tuple[str, str | None, int]:
    record = folder.read_record()
    return record["state"], record["failure"], record["attempt"]


def test_jobs_run_in_order_and_their_results_are_in_the_folders(tmp_path: Path) -> None:
    folders = [plan_stub_run(tmp_path / name, f"step_s={time}") for name, time in (("a", 0.02), ("b", 0.01))]
    ended, lines = run(*folders)
    assert ended == Ended(interrupted=False, not_started=(), refused=())
    assert [folder.read_record()["result"]["tokens_per_second_per_device"] for folder in folders] == [6400, 12800]
    assert lines == [
        "started point a",
        "[1/2] completed point a after 0s: 6,400 tokens/s/device, the best so far",
        "started point b",
        "[2/2] completed point b after 0s: 12,800 tokens/s/device, the best so far",
    ]


def test_one_bad_job_neither_stops_the_others_nor_hides(tmp_path: Path) -> None:
    stubs = ("", "fail_at=4", "signal_at=3:SIGABRT", "step_s=0.02")
    folders = [plan_stub_run(tmp_path / str(number), stub) for number, stub in enumerate(stubs)]
    ended, lines = run(*folders, num_slots=2)
    assert [state(folder)[:2] for folder in folders] == [
        ("completed", None),
        ("failed", "crash"),
        ("failed", "crash"),
        ("completed", None),
    ]
    assert ended == Ended(interrupted=False, not_started=(), refused=())
    said = "\n".join(lines)
    assert "failed (crash) point 1 after 0s: Exit code 1 after step 3: ValueError: told to fail at step 4" in said
    assert "failed (crash) point 2 after 0s: Ended by SIGABRT after step 2." in said


def test_as_many_jobs_run_at_a_time_as_there_are_slots_and_ctrl_c_ends_them(tmp_path: Path, start_sweep: Sweep) -> None:
    hanging = [plan_hanging(tmp_path / name) for name in ("a", "b")]
    third = plan_stub_run(tmp_path / "c")
    process = start_sweep(*(folder for folder, _ in hanging), third, num_slots=2)
    trainers = [read_ready(env)[1] for _, env in hanging]  # both hang at the same time
    assert third.read_record()["state"] == "planned"
    process.send_signal(signal.SIGINT)
    end, lines = read_end(process)
    assert end == {"interrupted": True, "not_started": ["c"], "refused": []}
    assert [folder.read_record()["state"] for folder, _ in hanging] == ["interrupted", "interrupted"]
    assert hanging[0][0].read_record()["result"]["num_steps"] == 4
    assert third.read_record()["state"] == "planned"
    assert "Stopping what runs (2). Once more: kill it at once." in lines
    wait_until_gone(*trainers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_scheduler_or_a_lost_terminal_ends_a_sweep_like_ctrl_c(
    tmp_path: Path, start_sweep: Sweep, number: signal.Signals
) -> None:
    folder, env = plan_hanging(tmp_path / "a")
    process = start_sweep(folder)
    read_ready(env)
    process.send_signal(number)
    end, _ = read_end(process)
    assert end["interrupted"]
    assert folder.read_record()["state"] == "interrupted"


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path, start_sweep: Sweep) -> None:
    folder, env = plan_hanging(tmp_path / "a", "hang_at=4 ignore_sigterm", run={"grace_s": 1000.0})
    process = start_sweep(folder, plan_stub_run(tmp_path / "b"), num_slots=1)
    read_ready(env)
    process.send_signal(signal.SIGINT)
    read_until(process, "Once more")
    process.send_signal(signal.SIGINT)
    end, _ = read_end(process)
    assert end["not_started"] == ["b"]
    assert folder.read_record()["signal"] == "SIGKILL"


def test_a_killed_parent_leaves_nothing_behind(tmp_path: Path, start_sweep: Sweep) -> None:
    hanging = [plan_hanging(tmp_path / name, "hang_at=4 grandchildren") for name in ("a", "b")]
    process = start_sweep(*(folder for folder, _ in hanging))
    trainers = [read_ready(env)[1] for _, env in hanging]
    workers = [folder.read_record()["worker"]["pid"] for folder, _ in hanging]
    process.kill()
    wait_until_gone(*workers, *trainers, *(pid for folder, _ in hanging for pid in read_grandchildren(folder)))
    assert [folder.read_record()["state"] for folder, _ in hanging] == ["interrupted", "interrupted"]


def test_a_killed_worker_does_not_stop_the_others(tmp_path: Path, start_sweep: Sweep) -> None:
    folder, env = plan_hanging(tmp_path / "a", "hang_at=4 grandchildren")
    other = plan_stub_run(tmp_path / "b")
    process = start_sweep(folder, other, num_slots=1)
    _, trainer = read_ready(env)
    os.kill(folder.read_record()["worker"]["pid"], signal.SIGKILL)
    end, lines = read_end(process)
    assert end == {"interrupted": False, "not_started": [], "refused": []}
    assert is_abandoned(folder.read_record())
    assert "[1/2] abandoned a: The worker was ended by SIGKILL, and the run with it." in lines
    assert other.read_record()["state"] == "completed"
    wait_until_gone(trainer, *read_grandchildren(folder))


def test_a_killed_worker_is_tried_again_where_retries_are_left(tmp_path: Path, start_sweep: Sweep) -> None:
    folder, env = plan_hanging(tmp_path / "a", "hang_at=4 grandchildren")
    process = start_sweep(folder, retries=1)
    read_ready(env)
    os.kill(folder.read_record()["worker"]["pid"], signal.SIGKILL)
    read_ready(env)  # the second attempt hangs as well
    assert folder.read_record()["attempt"] == 2
    process.send_signal(signal.SIGINT)
    _, lines = read_end(process)
    assert "trying again: abandoned a: The worker was ended by SIGKILL, and the run with it." in lines
    assert "started a (attempt 2)" in lines
    assert state(folder) == ("interrupted", None, 2)


def test_only_what_may_succeed_next_time_is_tried_again(tmp_path: Path) -> None:
    stubs = {
        "fail_at=4": ("failed", "crash", 3),
        "hang_at=4": ("timed_out", "hung", 3),
        "config_error": ("failed", "config", 1),
        "oom_at=4": ("failed", "out_of_memory", 1),
        "nan_at=2": ("failed", "not_finite_loss", 1),
        "quit_at=0": ("failed", "no_steps", 1),
        "quit_at=5": ("failed", "incomplete", 1),
        "step_s=9": ("timed_out", "timeout", 1),
        "": ("completed", None, 1),
    }
    limits = {"hang_at=4": {"hang_after_s": 0.5}, "step_s=9": {"timeout_s": 0.5}}
    folders = [plan_stub_run(tmp_path / str(n), stub, run=limits.get(stub)) for n, stub in enumerate(stubs)]
    run(*folders, num_slots=3, retries=2)
    assert [state(folder) for folder in folders] == list(stubs.values())


def test_after_a_failure_fail_fast_starts_nothing_more_and_lets_running_ones_end(tmp_path: Path) -> None:
    stubs = ("step_s=0.2", "fail_at=0", "", "")
    folders = [plan_stub_run(tmp_path / str(n), stub) for n, stub in enumerate(stubs)]
    ended, _ = run(*folders, num_slots=2, fail_fast=True)
    assert [folder.read_record()["state"] for folder in folders] == ["completed", "failed", "planned", "planned"]
    assert [job.folder for job in ended.not_started] == folders[2:]
    assert not ended.interrupted


def test_a_slow_point_is_stopped_with_its_figures(tmp_path: Path) -> None:
    slow = plan_stub_run(tmp_path / "slow", "step_s=0.1", steps=1000)
    run(plan_stub_run(tmp_path / "fast", "step_s=0.02"), slow, stop_below=0.5)
    record = slow.read_record()
    assert (record["state"], record["failure"]) == ("skipped", "slow")
    assert record["reason"].startswith("Stopped because it is slow: 1,280 tokens/s/device, the median of ")
    assert record["reason"].endswith(
        "is 20% of the speed of the fastest completed point (6,400 tokens/s/device); sweep.stop_below=0.5."
    )
    assert record["result"]["tokens_per_second_per_device"] == 1280
    assert record["result"]["num_steps_measured"] >= 5


def test_what_earlier_starts_completed_counts_for_slow_points_and_for_the_best(tmp_path: Path) -> None:
    slow = plan_stub_run(tmp_path / "slow", "step_s=0.1", steps=1000)
    good = plan_stub_run(tmp_path / "good", "step_s=0.025")
    _, lines = run(slow, good, stop_below=0.5, completed=(("the fast one", FASTEST),))
    assert slow.read_record()["failure"] == "slow"
    assert lines[-1] == "[2/2] completed point good after 0s: 5,120 tokens/s/device"


def test_a_retry_is_not_judged_by_the_steps_of_the_attempt_before(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", "step_s=0.1", steps=1000)
    run(folder, stop_below=0.5, completed=(("the fast one", FASTEST),))
    command = read_json(folder.command_json)
    folder.command_json.write_text(json.dumps(command | {"env": {"STUB": "step_s=0.02"}}), encoding="utf-8")
    maxtext = read_json(folder.maxtext_yml)
    folder.maxtext_yml.write_text(json.dumps(maxtext | {"steps": 60}), encoding="utf-8")
    run(folder, stop_below=0.5, completed=(("the fast one", FASTEST),))
    assert folder.read_record()["failure"] != "slow"
    assert folder.read_record()["result"]["num_steps"] == 60


def test_a_folder_that_cannot_be_executed_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    bad, good = plan_stub_run(tmp_path / "bad"), plan_stub_run(tmp_path / "good")
    bad.command_json.write_text("{", encoding="utf-8")
    before = bad.read_record()
    ended, lines = run(bad, good, retries=3)
    assert [job.folder for job in ended.refused] == [bad]
    assert lines[1].startswith(f"[1/2] refused point bad: {bad.command_json} is not valid JSON")
    assert bad.read_record() == before
    assert good.read_record()["state"] == "completed"


def test_a_folder_with_another_plan_is_refused(tmp_path: Path) -> None:
    job = make_job(plan_stub_run(tmp_path / "a", "fail_at=1"))
    plan_stub_run(tmp_path / "a", "")
    console = Console(file=io.StringIO(), width=200)
    ended = run_jobs([job], slots=[Slot()], policy=Policy(objective=TOKENS), view=SweepView(Voice(console)))
    assert ended.refused == (job,)
    assert job.folder.read_record()["state"] == "planned"


def test_a_folder_that_somebody_else_executes_is_told_and_left_to_him(tmp_path: Path) -> None:
    folder, other = plan_stub_run(tmp_path / "a"), plan_stub_run(tmp_path / "b")
    with folder.locked():
        ended, lines = run(folder, other, retries=1)
    assert [job.folder for job in ended.refused] == [folder]
    assert f"[1/2] refused point a: The run folder {folder.path} is being executed by another worker." in lines[1]
    assert folder.read_record()["state"] == "planned"
    assert other.read_record()["state"] == "completed"


def test_a_run_sees_its_slots_devices_and_its_secrets_and_the_record_names_the_devices(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a")
    slot = Slot(env={ROCR: "2,3", HIP: "0,1"})
    console = Console(file=io.StringIO(), width=200)
    job = make_job(folder, secret_env={"HF_TOKEN": "s3cr3t-SENTINEL"})
    run_jobs([job], slots=[slot], policy=Policy(objective=TOKENS), view=SweepView(Voice(console)))
    seen = read_json(folder.path / "stub_env.json")
    assert (seen[ROCR], seen[HIP], seen["HF_TOKEN"]) == ("2,3", "0,1", "s3cr3t-SENTINEL")
    assert folder.read_record()["visible_devices"] == {ROCR: "2,3", HIP: "0,1"}
    assert "SENTINEL" not in folder.run_json.read_text(encoding="utf-8")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith("started point a on GPU 2,3\n")


class _BrokenView(SweepView):
    """A view with a mistake in it, as our own code may have one."""

    def update(self, *_: Any, **__: Any) -> None:
        raise ZeroDivisionError


def test_when_our_own_code_fails_no_worker_is_left(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", "step_s=100", run={"grace_s": 1000.0})
    with pytest.raises(ZeroDivisionError):
        run_jobs(
            [make_job(folder)],
            slots=[Slot()],
            policy=Policy(objective=TOKENS),
            view=_BrokenView(Voice(Console(file=io.StringIO()))),
        )
    assert psutil.Process().children() == []
    with folder.locked():
        assert folder.read_record()["state"] in ("planned", "interrupted")


def test_a_worker_that_is_let_go_before_its_trainer_starts_waits_for_nothing(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", "step_s=100", run={"grace_s": 1000.0})
    worker = WorkerProcess(folder, fingerprint=folder.read_record()["fingerprint"], env=os.environ)
    worker.let_go()
    assert state(folder)[0] == "interrupted"


def test_signals_are_as_before_when_a_sweep_is_over(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(plan_stub_run(tmp_path / "a"))
    assert signal.getsignal(signal.SIGINT) is before
