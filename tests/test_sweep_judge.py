"""A sweep from its plan to its table, with the stub trainer in MaxText's place."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunCli
from tests.run_folders import STUB_TRAINER

STUB = f"run.trainer=[{sys.executable},{STUB_TRAINER}]"
GRID = ("model=tiny", "platform=cpu", "steps=8", "stderr_sink_level=ERROR", STUB)


def _states(sweep: Path) -> dict[str, str]:
    records = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(sweep.glob("*/run.json"))]
    return {" ".join(record["overrides"]): record["state"] for record in records}


def _logs(sweep: Path) -> list[Path]:
    return sorted(sweep.glob("*/train.log"))


def test_illegal_cells_are_told_and_the_others_run(run_cli: RunCli, tmp_path: Path) -> None:
    grid = ('quantization="",nanoo_fp8', "gradient_accumulation_steps=1,4", f"sweep.dir={tmp_path / 's'}")
    done = run_cli("--multirun", *GRID, *grid)
    assert done.code == 1
    assert "4 points: 3 run, 1 invalid" in done.out
    assert "gradient_accumulation_steps=4" in done.err
    assert sorted(_states(tmp_path / "s").values()) == ["completed", "completed", "completed", "invalid"]
    assert len(_logs(tmp_path / "s")) == 3


def test_on_request_nothing_starts_when_a_cell_is_illegal(run_cli: RunCli, tmp_path: Path) -> None:
    grid = ('quantization="",nanoo_fp8', "gradient_accumulation_steps=1,4", "sweep.on_invalid=stop")
    done = run_cli("--multirun", *GRID, *grid, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "Nothing was started" in done.err
    assert not (tmp_path / "s").exists()


def test_a_misspelt_value_stops_the_whole_sweep(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *GRID, "remat_policy=full,fulll", "attention=dot_product,cudnn_flash")
    assert done.code == 2
    assert "remat_policy=full" in done.err
    assert "attention=cudnn_flash is not a kernel" in done.err
    assert not list(tmp_path.glob("outputs/*/*/train.log"))


def change_record(sweep: Path, point: str, **changes: Any) -> None:
    """Let the run folder of a point say something else."""
    file = next(sweep.glob(f"{point}-*/run.json"))
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_the_same_command_again_runs_only_what_is_missing(run_cli: RunCli, tmp_path: Path) -> None:
    sweep = tmp_path / "s"
    command = ("--multirun", *GRID, "remat_policy=full,minimal,save_qkv_proj,save_out_proj", f"sweep.dir={sweep}")
    assert run_cli(*command).code == 0
    first = {log: log.stat().st_mtime_ns for log in _logs(sweep)}
    change_record(sweep, "0001", state="interrupted")
    change_record(sweep, "0002", state="running", worker={"host": socket.gethostname(), "boot_id": "another", "pid": 1})
    damaged = next(sweep.glob("0003-*/run.json"))
    damaged.write_bytes(damaged.read_bytes()[:1000])
    half = damaged.read_bytes()
    again = run_cli(*command)
    assert again.code == 1
    assert "4 points: 1 done, 2 run again, 1 invalid" in again.out
    assert "its worker died" in again.out
    assert f"has an unreadable record, {damaged}" in again.err
    assert "remove this one" in again.err
    assert damaged.read_bytes() == half
    second = {log: log.stat().st_mtime_ns for log in _logs(sweep)}
    assert [log.parent.name[:4] for log in second if second[log] != first[log]] == ["0001", "0002"]


def test_a_changed_point_is_refused_with_the_differing_key(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    mine = tmp_path / "mine" / "model" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    for size in (64, 128):
        mine.write_text(f"# @package _global_\ndefaults: [tiny, _self_]\nbase_emb_dim: {size}\n", encoding="utf-8")
        done = run_cli("--config-dir", str(tmp_path / "mine"), *common, "model=mine")
    assert done.code == 2
    assert done.err.count("base_emb_dim: 64 there, 128 now") == 2  # all points at once, each by its folder


def test_points_that_train_the_same_run_once(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *GRID, "log_period=10,20", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 0, done.err
    assert "trains exactly what point 0 trains" in " ".join(done.out.replace("│", " ").split())
    assert len(_logs(tmp_path / "s")) == 1


@pytest.mark.slow
def test_a_sweep_with_refused_points_continues_too(run_cli: RunCli, tmp_path: Path) -> None:
    grid = ("gradient_accumulation_steps=1,4", "quantization=nanoo_fp8", f"sweep.dir={tmp_path / 's'}")
    first = run_cli("--multirun", *GRID, *grid)
    again = run_cli("--multirun", *GRID, *grid)
    assert (first.code, again.code) == (1, 1)
    assert "2 points: 1 done, 1 invalid" in again.out
    allowed = run_cli("--multirun", *GRID, *grid, "run.accept=[fp8_gradient_accumulation]")
    assert allowed.code == 0, allowed.err
    assert sorted(_states(tmp_path / "s").values()) == ["completed", "completed"]


@pytest.mark.slow
def test_a_longer_sweep_continues_what_is_complete_so_far(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    longer = run_cli(*command, "steps=12")
    assert longer.code == 0, longer.err
    assert "2 points: 2 run again" in longer.out
    assert "completed 8 of 12 steps; begins again (no checkpoint)" in " ".join(longer.out.replace("│", " ").split())
    shorter = run_cli(*command)
    assert "2 points: 2 done" in shorter.out


def test_a_point_is_not_run_again_for_its_quotes_or_its_place_in_the_grid(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("--multirun", *GRID, f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*common, 'platform.env.STUB="step_s=0.001","step_s=0.002"').code == 0
    folders = {log.parent for log in _logs(tmp_path / "s")}
    again = run_cli(*common, "platform.env.STUB='step_s=0.001','step_s=0.002'")
    assert "2 points: 2 done" in again.out
    longer = run_cli(*common, "platform.env.STUB='step_s=0.003','step_s=0.002','step_s=0.001'")
    assert longer.code == 0, longer.err
    assert "3 points: 1 run, 2 done" in longer.out
    assert "this sweep, as point 0" in " ".join(longer.out.replace("│", " ").split())
    assert len({log.parent for log in _logs(tmp_path / "s")} - folders) == 1


def test_a_reason_that_points_share_is_told_once_and_so_is_a_problem(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *GRID, "platform.xla_flags.xla_nonsuch=1,2", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert done.out.count("see 1 below") == 2
    assert done.out.count("does not know the XLA flag xla_nonsuch") == 1
    assert done.err.count("does not know the XLA flag xla_nonsuch") == 1


def test_what_is_only_exported_is_not_said_to_run(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *GRID, "remat_policy=full,minimal", "action=export", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 0, done.err
    assert "2 points: 2 export" in done.out
    assert "Point 1 remat_policy=minimal\n" in done.out
    first = min(file.parent for file in (tmp_path / "s").glob("*/run.json"))
    assert f"python -m primus_hydra.worker {first}\n" in done.out
    assert f"python -m primus_hydra.report {tmp_path / 's'}\n" in done.out


def test_a_sweep_folder_below_a_file_is_told_once(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_cli("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 'file' / 's'}")
    assert done.code == 2
    assert done.err.count("cannot be written") == 1
    assert "sweep.dir=DIR" in done.err
    assert "run.dir" not in done.err


def test_a_trainer_lies_where_the_command_was_typed_and_a_failure_names_its_log(
    run_cli: RunCli, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("import sys\nprint('no such disk')\nsys.exit(5)\n", encoding="utf-8")
    trainer = f"run.trainer=[{sys.executable},mine.py]"
    done = run_cli("--multirun", *GRID, trainer, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 1
    assert "Exit code 5 before the first step. Its last words: no such disk" in done.out
    assert len(_logs(tmp_path / "s")) == 2
    assert all(done.out.count(f"(log: {log})") == 1 for log in _logs(tmp_path / "s"))


def test_points_that_differ_by_a_setting_of_the_run_are_two(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *GRID, "run.warmup_steps=1,2", f"sweep.dir={tmp_path / 's'}")
    assert done.code == 0, done.err
    assert list(_states(tmp_path / "s").values()) == ["completed", "completed"]


@pytest.mark.slow
def test_a_folder_that_lost_its_record_leaves_out_only_its_point(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    first, second = sorted((tmp_path / "s").glob("*/run.json"))
    first.unlink()
    kept = second.read_bytes()
    again = run_cli(*command)
    assert again.code == 1
    assert "is not a run folder" in again.err
    assert second.read_bytes() == kept
