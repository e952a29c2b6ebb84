"""Sweeps from the command to the exit code, with the stub trainer in MaxText's place: run, kill, take up again."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, RunCli
from tests.processes import wait_until_written
from tests.run_folders import STUB_TRAINER, make_ready_fifo, read_ready

STUB = f"run.trainer=[{sys.executable},{STUB_TRAINER}]"
COMMON = ("--multirun", "model=tiny", "platform=cpu", "steps=8", "stderr_sink_level=ERROR", STUB)
FOUR_SPEEDS = 'platform.env.STUB="step_s=0.004","step_s=0.001","step_s=0.002","step_s=0.003"'


def read_records(sweep: Path) -> list[dict[str, Any]]:
    """run.json of every run folder, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(sweep.glob("*/run.json"))]


def states(sweep: Path) -> list[str]:
    return [record["state"] for record in read_records(sweep)]


def snapshot(sweep: Path, pattern: str = "**/*") -> dict[Path, tuple[int, bytes]]:
    """Files with their time and content."""
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in sweep.glob(pattern) if file.is_file()}


@contextlib.contextmanager
def started(folder: Path, *arguments: str, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The program in a process group of its own; killed at the end, if it is still there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "primus_hydra", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until_hanging(env: Mapping[str, str]) -> int:
    """Read what trainers say until one hangs; returns its pid."""
    while True:
        word, pid = read_ready(env)
        if word == "hanging":
            return pid


def test_a_variable_and_an_xla_flag_make_different_points(run_cli: RunCli, tmp_path: Path) -> None:
    """Each point has its own, and none of another point's."""
    grid = ("platform.env.NVTE_FUSED_ATTN=null,1", "platform.xla_flags.xla_cpu_use_onednn=true,false")
    done = run_cli(*COMMON, *grid, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 0, done.err
    seen = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((tmp_path / "s").glob("*/stub_env.json"))]
    pairs = {(env.get("NVTE_FUSED_ATTN"), "onednn=true" in env["XLA_FLAGS"]) for env in seen}
    assert pairs == {(None, True), (None, False), ("1", True), ("1", False)}
    assert len({record["fingerprint"] for record in read_records(tmp_path / "s")}) == 4
    assert json.loads((tmp_path / "s" / "sweep.json").read_text(encoding="utf-8"))["schema"] == 1
    assert (tmp_path / "s" / "results.csv").exists()
    assert f"-m primus_hydra.report {tmp_path / 's'}" in done.out
    assert "Run what is missing" not in done.out


def test_repeats_lie_beside_their_point_the_second_ones_come_last_and_more_may_follow(
    run_cli: RunCli, tmp_path: Path
) -> None:
    command = (*COMMON, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command, "sweep.repeats=2")
    assert done.code == 0, done.err
    assert "2 points, 4 runs: 4 run" in done.out
    records = read_records(tmp_path / "s")
    assert [(record["point"], record["repeat"]) for record in records] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    logs = sorted((tmp_path / "s").glob("*/train.log"), key=lambda log: log.stat().st_mtime_ns)
    assert ["repeat2" in log.parent.name for log in logs] == [False, False, True, True]
    again = run_cli(*command, "sweep.repeats=3")
    assert again.code == 0
    assert "2 points, 6 runs: 4 done, 2 run" in again.out
    assert states(tmp_path / "s") == ["completed"] * 6


@pytest.mark.slow
def test_a_crash_is_tried_again_as_often_as_asked(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command, "sweep.retries=1", env={"STUB": "crash_once"})
    assert done.code == 0, done.err
    assert [(record["state"], record["attempt"]) for record in read_records(tmp_path / "s")] == [("completed", 2)] * 2


def test_a_failure_neither_stops_the_others_nor_hides(run_cli: RunCli, tmp_path: Path) -> None:
    grid = 'platform.env.STUB="","fail_at=3","signal_at=2:SIGABRT","nan_at=4","step_s=0.002"'
    done = run_cli(*COMMON, grid, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 1
    records = read_records(tmp_path / "s")
    assert [record["failure"] for record in records] == [None, "crash", "crash", "not_finite_loss", None]
    assert "told to fail at step 3" in done.out
    assert "SIGABRT" in done.out
    assert "The loss is not finite at step 4" in done.out
    assert "[HYDRA]" not in done.out + done.err
    assert "Traceback" not in done.err
    assert "Run what is missing" in done.out


def test_after_a_failure_fail_fast_leaves_the_rest_planned(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, 'platform.env.STUB="","exit=3","step_s=0.002"', f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command, "sweep.fail_fast=true")
    assert done.code == 1
    assert states(tmp_path / "s") == ["completed", "failed", "planned"]
    assert "Sweep folder" in done.out


def test_a_point_far_below_the_best_is_stopped_and_stays_so(run_cli: RunCli, tmp_path: Path) -> None:
    speeds = 'platform.env.STUB="step_s=0.001","step_s=0.3"'
    command = (*COMMON, speeds, "steps=100", f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command, "sweep.stop_below=0.5")
    assert done.code == 0, done.err
    assert [record["failure"] for record in read_records(tmp_path / "s")] == [None, "slow"]
    assert "sweep.stop_below=0.5" in done.out
    again = run_cli(*command, "sweep.stop_below=0.5")
    assert "2 points: 1 done, 1 skipped" in again.out
    freed = run_cli(*command, "action=explain")
    assert "2 points: 1 done, 1 explain" in freed.out


def test_two_points_run_at_a_time_on_request(run_cli: RunCli, tmp_path: Path) -> None:
    env = make_ready_fifo(tmp_path / "ready") | {"STUB": "hang_at=2"}
    command = (*COMMON, "remat_policy=full,minimal,save_qkv_proj", "sweep.max_parallel=2", "sweep.dir=s")
    with started(tmp_path, *command, env=env) as process:
        assert {wait_until_hanging(env), wait_until_hanging(env)}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert states(tmp_path / "s") == ["interrupted", "interrupted", "planned"]
    assert "Interrupted by" in out
    assert "-m primus_hydra sweep.resume=" in out
    assert "Traceback" not in err


def test_a_sweep_whose_program_was_killed_is_taken_up_again(run_cli: RunCli, tmp_path: Path) -> None:
    env = make_ready_fifo(tmp_path / "ready") | {"STUB": "hang_at=10"}
    command = (*COMMON[:3], COMMON[4], STUB, "steps=8,20,30", "sweep.dir=s")
    with started(tmp_path, *command, env=env) as process:
        wait_until_hanging(env)
        process.kill()
        process.wait()
        again = run_cli(*command, cwd=tmp_path)
    assert again.code == 0, again.err
    assert "3 points: 1 done, 1 run again, 1 run" in again.out
    records = read_records(tmp_path / "s")
    assert [(record["state"], record["attempt"]) for record in records] == [
        ("completed", 1),
        ("completed", 2),
        ("completed", 1),
    ]
    earlier = json.loads(next((tmp_path / "s").glob("0001-*/run.json.1")).read_text(encoding="utf-8"))
    assert earlier["state"] == "interrupted"


def test_a_second_start_in_the_same_folder_is_refused_and_writes_nothing(run_cli: RunCli, tmp_path: Path) -> None:
    env = make_ready_fifo(tmp_path / "ready") | {"STUB": "hang_at=2"}
    command = (*COMMON, "remat_policy=full,minimal", "sweep.dir=s")
    with started(tmp_path, *command, env=env):
        wait_until_hanging(env)
        wait_until_written(next((tmp_path / "s").glob("0000-*/train.log")), "completed step: 1")
        before = snapshot(tmp_path / "s")
        second = run_cli(*command, cwd=tmp_path)
        assert second.code == 2
        assert "Nothing was started" in second.err
        assert "another start of this sweep is running" in second.err
        assert snapshot(tmp_path / "s") == before


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("", encoding="utf-8")
    done = run_cli(*COMMON, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "Nothing was started" in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_disk_that_is_full_while_planning_is_told_and_loses_no_result(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command, "remat_policy=full").code == 0
    result = read_records(tmp_path / "s")
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    program = f"{full}; import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    program += "import sys; from primus_hydra.cli import main; sys.exit(main())"
    overrides = [*command, "remat_policy=full,minimal"]
    done = subprocess.run(
        [sys.executable, "-c", program, *overrides],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Nothing was started" in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert read_records(tmp_path / "s")[0] == result[0]
    assert not list((tmp_path / "s").glob("0001-*/train.log"))


def test_runs_that_would_share_their_checkpoints_are_refused(run_cli: RunCli, tmp_path: Path) -> None:
    shared = ("run_name=mine", f"base_output_directory={tmp_path / 'out'}", "enable_checkpointing=true")
    done = run_cli(*COMMON, "remat_policy=full,minimal", *shared, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "2 runs of this sweep would write their checkpoints into" in done.err
    assert not (tmp_path / "s").exists()


def test_what_is_wrong_with_a_sweep_is_told_with_what_is_wrong_with_its_points(run_cli: RunCli) -> None:
    wrong = ("sweep.rungs=[3]", "sweep.repeats=2")
    done = run_cli(*COMMON, "quantization=nanoo_fp8", "gradient_accumulation_steps=1,4", *wrong)
    assert done.code == 2
    assert "only after 6 steps" in done.err
    assert "sweep.repeats is 2" in done.err
    assert "gradient_accumulation_steps=4" in done.err
    assert "Nothing was started." in done.err


def test_other_actions_look_at_every_point_and_run_none(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    exported = run_cli(*command, "action=export")
    assert exported.code == 0, exported.err
    assert states(tmp_path / "s") == ["planned", "planned"]
    names = sorted(file.parent.name.rpartition("-")[0] for file in (tmp_path / "s").glob("*/run.json"))
    assert names == ["0000-remat_policy=full", "0001-remat_policy=minimal"]
    explained = run_cli(*command, "action=explain")
    assert explained.out.count("remat_policy: full ") + explained.out.count("remat_policy: minimal ") == 2
    assert not list((tmp_path / "s").glob("*/train.log"))


def test_rungs_let_only_the_best_go_on(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, FOUR_SPEEDS, "steps=60", "sweep.rungs=[8,20]", f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command)
    assert done.code == 0, done.err
    records = read_records(tmp_path / "s")
    steps = [record["composed"]["steps"]["value"] for record in records]
    assert list(zip([record["state"] for record in records], steps, strict=True)) == [
        ("skipped", 8),
        ("completed", 60),
        ("skipped", 20),
        ("skipped", 8),
    ]
    assert {record["failure"] for record in records} == {None, "rung"}
    assert records[2]["reason"].startswith("Stopped after 20 of 60 steps: 2nd of 2 (64,000 tokens/s/device")
    assert records[2]["result"]["num_steps"] == 20
    assert records[0]["composed"]["learning_rate_schedule_steps"]["value"] == 60
    assert "Stopped after 8 of 60 steps: 4th of 4" in done.out
    before = snapshot(tmp_path / "s", "0*/**/*")
    again = run_cli(*command)
    assert again.code == 0
    assert "4 points: 3 skipped, 1 done" in again.out
    assert snapshot(tmp_path / "s", "0*/**/*") == before


def test_a_failed_point_does_not_survive_a_rung(run_cli: RunCli, tmp_path: Path) -> None:
    grid = 'platform.env.STUB="fail_at=3","step_s=0.002"'
    done = run_cli(*COMMON, grid, "steps=60", "sweep.rungs=[8]", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 1
    assert states(tmp_path / "s") == ["failed", "completed"]


@pytest.mark.slow
def test_after_a_kill_no_rung_is_repeated_and_its_decision_stays(run_cli: RunCli, tmp_path: Path) -> None:
    env = make_ready_fifo(tmp_path / "ready") | {"STUB": "hang_at=15"}
    command = (*COMMON, "remat_policy=full,minimal", "steps=60", "sweep.rungs=[8,20]", "sweep.dir=s")
    with started(tmp_path, *command, env=env) as process:
        wait_until_hanging(env)
        process.kill()
        process.wait()
        # As if the kill had come between the decision and what follows from it.
        folder = next((tmp_path / "s").glob("0001-*"))
        (folder / "run.json.1").replace(folder / "run.json")
        file = tmp_path / "s" / "rungs.json"
        rungs = json.loads(file.read_text(encoding="utf-8"))
        (decision,) = rungs["decisions"]
        dropped = decision["survivors"].pop(1)
        decision["dropped"] = {dropped: "Stopped after 8 of 60 steps: for the test."}
        file.write_text(json.dumps(rungs), encoding="utf-8")
        again = run_cli(*command, cwd=tmp_path)
    assert again.code == 0, again.err
    first, second = read_records(tmp_path / "s")
    assert (first["state"], first["attempt"]) == ("completed", 4)  # rung 8, killed at rung 20, rung 20, the whole run
    assert (second["state"], second["reason"]) == ("skipped", "Stopped after 8 of 60 steps: for the test.")
    assert second["attempt"] == 1
    assert [decision["steps"] for decision in json.loads(file.read_text(encoding="utf-8"))["decisions"]] == [8, 20]


@pytest.mark.slow
def test_rungs_decided_by_another_rule_or_without_a_point_are_refused(run_cli: RunCli, tmp_path: Path) -> None:
    command = (*COMMON, "steps=60", "sweep.rungs=[8]", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command, "remat_policy=full,minimal").code == 0
    other = run_cli(*command, "remat_policy=full,minimal", "sweep.keep=0.25")
    assert other.code == 2
    assert "keep: 0.5 there, 0.25 now" in other.err
    more = run_cli(*command, "remat_policy=full,minimal,save_qkv_proj")
    assert more.code == 2
    assert "was decided without 0002-remat_policy=save_qkv_proj" in more.err


@pytest.mark.slow
def test_with_checkpoints_the_next_rung_continues_and_learns_the_same(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("model=tiny", "platform=cpu", "steps=24", "enable_checkpointing=true", "checkpoint_period=1000")
    swept = run_cli(
        "--multirun", *common, "sweep.points=[{remat_policy: full}]", "sweep.rungs=[8]", "sweep.dir=s", timeout_s=280
    )
    assert swept.code == 0, swept.err
    whole = run_cli(*common, "remat_policy=full", f"run.dir={tmp_path / 'whole'}", timeout_s=280)
    assert whole.code == 0, whole.err
    (folder,) = (path.parent for path in (tmp_path / "s").glob("*/run.json"))
    (record,) = read_records(tmp_path / "s")
    assert (record["attempt"], record["resumed_at_step"]) == (2, 8)

    def losses(*names: str) -> dict[float, float]:
        lines = [line for name in names for line in Path(name).read_text(encoding="utf-8").splitlines()]
        steps = [json.loads(line) for line in lines]
        return {step["step"]: step["learning/loss"] for step in steps if "learning/loss" in step}

    in_two_parts = losses(str(folder / "metrics.jsonl.1"), str(folder / "metrics.jsonl"))
    assert in_two_parts == losses(str(tmp_path / "whole" / "metrics.jsonl"))
    assert len(in_two_parts) == 24
