"""A sweep from its plan to its table, with the stub trainer in MaxText's place."""

import json
import sys
from pathlib import Path

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


def test_the_same_command_again_runs_only_what_is_missing(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    first = {log: log.stat().st_mtime_ns for log in _logs(tmp_path / "s")}
    record = next((tmp_path / "s").glob("0001-*/run.json"))
    interrupted = json.loads(record.read_text(encoding="utf-8")) | {"state": "interrupted"}
    record.write_text(json.dumps(interrupted), encoding="utf-8")
    again = run_cli(*command)
    assert again.code == 0, again.err
    assert "2 points: 1 done, 1 run again" in again.out
    second = {log: log.stat().st_mtime_ns for log in _logs(tmp_path / "s")}
    assert [log.parent.name[:4] for log in second if second[log] != first[log]] == ["0001"]


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


def test_after_a_failure_the_rest_stays_planned_on_request(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    done = run_cli(*command, "sweep.fail_fast=true", env={"STUB": "exit=3"})
    assert done.code == 1
    assert len(_logs(tmp_path / "s")) == 1
    assert sorted(_states(tmp_path / "s").values()) == ["failed", "planned"]


def test_a_sweep_with_refused_points_continues_too(run_cli: RunCli, tmp_path: Path) -> None:
    grid = ("gradient_accumulation_steps=1,4", "quantization=nanoo_fp8", f"sweep.dir={tmp_path / 's'}")
    first = run_cli("--multirun", *GRID, *grid)
    again = run_cli("--multirun", *GRID, *grid)
    assert (first.code, again.code) == (1, 1)
    assert "2 points: 1 done, 1 invalid" in again.out
    allowed = run_cli("--multirun", *GRID, *grid, "run.accept=[fp8_gradient_accumulation]")
    assert allowed.code == 0, allowed.err
    assert sorted(_states(tmp_path / "s").values()) == ["completed", "completed"]


def test_folders_are_named_by_what_differs(run_cli: RunCli, tmp_path: Path) -> None:
    run_cli("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}", "action=export")
    names = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "s").iterdir())
    assert names == ["0000-remat_policy=full", "0001-remat_policy=minimal"]


def test_a_longer_sweep_continues_what_is_complete_so_far(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    longer = run_cli(*command, "steps=12")
    assert longer.code == 0, longer.err
    assert "2 points: 2 run again" in longer.out
    assert "completed 8 of 12 steps so far" in " ".join(longer.out.replace("│", " ").split())
    shorter = run_cli(*command)
    assert "2 points: 2 done" in shorter.out


def test_a_damaged_record_leaves_out_its_point_and_is_kept(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    damaged = next((tmp_path / "s").glob("0000-*/run.json"))
    half = damaged.read_bytes()[:1000]
    damaged.write_bytes(half)
    done = run_cli(*command)
    assert done.code == 1
    assert "2 points: 1 invalid, 1 done" in done.out
    assert f"has an unreadable record, {damaged}" in done.err
    assert "remove this one" in done.err
    assert damaged.read_bytes() == half


def test_an_abandoned_run_is_run_again(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *GRID, "remat_policy=full,minimal", f"sweep.dir={tmp_path / 's'}")
    assert run_cli(*command).code == 0
    record = next((tmp_path / "s").glob("0001-*/run.json"))
    died = json.loads(record.read_text(encoding="utf-8"))
    died |= {"state": "running", "worker": died["worker"] | {"boot_id": "another"}}
    record.write_text(json.dumps(died), encoding="utf-8")
    again = run_cli(*command)
    assert again.code == 0, again.err
    assert "its worker died" in again.out
    assert sorted(_states(tmp_path / "s").values()) == ["completed", "completed"]
