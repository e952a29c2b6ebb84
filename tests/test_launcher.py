"""`--multirun` from the command line to run folders: grids of presets, our launcher, and the ones that Hydra brings."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from primus_hydra.paths import conf_dir, list_choices
from tests.conftest import REPOSITORY, Finished, RunCli

STUB = f"run.trainer=[{sys.executable},{REPOSITORY / 'tests' / 'trainers' / 'stub_trainer.py'}]"
QUICK = ("model=tiny", "data=synthetic", "platform=cpu", STUB)


def write_presets(folder: Path, **texts: str) -> tuple[str, str]:
    """Experiment presets of a user's own; returns the option that names their folder."""
    (folder / "experiment").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "experiment" / f"{name}.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    return "--config-dir", str(folder)


def list_slugs(folder: Path) -> list[str]:
    """Names of the run folders, without their hashes."""
    return sorted(re.sub(r"-[0-9a-f]{8}$", "", file.parent.name) for file in folder.glob("*/run.json"))


def read_states(folder: Path) -> list[str]:
    records = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*/run.json"))]
    return [str(record["state"]) for record in records]


def test_a_grid_in_an_experiment_is_run_each_swept_experiment_its_own(run_cli: RunCli, tmp_path: Path) -> None:
    mine = write_presets(
        tmp_path / "mine",
        a="sweep: {grid: {remat_policy: [full, minimal], platform.env.FOO: ['1', '2']}}",
        b="sweep: {zip: [{per_device_batch_size: [1, 2], max_target_length: [64, 32]}], points: [{quantization: ''}]}",
    )
    done = run_cli(*mine, "--multirun", *QUICK, "experiment=a,b", "action=export", f"sweep.dir={tmp_path}/sweep")
    assert done.code == 0, done.err
    assert list_slugs(tmp_path / "sweep") == [
        "0000-remat_policy=full-FOO=1-a",
        "0001-remat_policy=full-FOO=2-a",
        "0002-remat_policy=minimal-FOO=1-a",
        "0003-remat_policy=minimal-FOO=2-a",
        "0004-per_device_batch_size=1-max_target_length=64-b",
        "0005-per_device_batch_size=2-max_target_length=32-b",
        "0006-quantization=-b",
    ]


def test_a_grid_without_multirun_is_one_run_with_a_warning(run_cli: RunCli, tmp_path: Path) -> None:
    mine = write_presets(tmp_path / "mine", a="sweep: {grid: {remat_policy: [full, minimal]}}")
    done = run_cli(*mine, *QUICK, "experiment=a", "action=export", f"run.dir={tmp_path}/run")
    assert done.code == 0
    assert "Add --multirun to run the points" in done.err
    assert str(tmp_path / "mine" / "experiment" / "a.yaml") in done.err
    assert (tmp_path / "run" / "run.json").exists()


def test_a_launcher_chosen_by_a_swept_preset_is_refused_and_by_a_single_one_is_used(
    run_cli: RunCli, tmp_path: Path
) -> None:
    basic = "defaults: [_self_, {override /hydra/launcher: basic}]\n"
    mine = write_presets(tmp_path / "mine", plain="steps: 6\n", basic=basic)
    refused = run_cli(*mine, "--multirun", *QUICK, "experiment=plain,basic")
    assert refused.code == 2
    assert "hydra/launcher=basic" in refused.err
    assert "experiment=basic" in refused.err
    assert "Write hydra/launcher=NAME on the command line" in refused.err
    assert not (tmp_path / "outputs").exists()
    used = run_cli(*mine, "--multirun", *QUICK, "experiment=basic", "steps=6,7", "sweep.retries=1")
    assert used.code == 2
    assert "sweep.retries=1 has no effect with hydra/launcher=basic" in used.err


def test_all_problems_of_a_sweep_are_told_at_once_and_nothing_is_left_behind(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", *QUICK, "stps=1,2", "steps=6,7", "remat_policy=fulll", "sweep.max_parallel=1,2")
    assert done.code == 2
    assert all(text in done.err for text in ("stps", "remat_policy=fulll", "sweep.max_parallel"))
    assert done.err.count("remat_policy=fulll is not a policy") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_grid_asks_for_is_checked_like_a_typed_override(run_cli: RunCli, tmp_path: Path) -> None:
    grid = "sweep: {grid: {remat_polcy: [full], model: [nobody], platform.env.A: [1], run_name: [2024_01_01]}}"
    mine = write_presets(tmp_path / "mine", bad=grid)
    done = run_cli(*mine, "--multirun", *QUICK[1:], "experiment=bad")
    assert done.code == 2
    assert done.err.startswith("Nothing was started: 4 problems.")
    assert "Did you mean remat_policy" in done.err
    assert "There is no preset model=nobody" in done.err
    assert "platform.env.A is 1, which YAML does not read as text" in done.err
    assert "run_name is 20240101" in done.err
    assert done.err.count(str(tmp_path / "mine" / "experiment" / "bad.yaml")) == 4


def test_wrong_settings_in_a_preset_are_told_in_our_words_all_at_once(run_cli: RunCli, tmp_path: Path) -> None:
    mine = write_presets(
        tmp_path / "mine",
        types="run: {grace_s: abc}\nsweep: {rungs: [3, 2], on_invalid: skipp, keep: 2, zip: {a: [1]}}\naction: fly\n",
        shapes="sweep: {grid: {steps: 3}, zip: [{log_period: [1], seed: [1, 2]}]}\n",
    )
    done = run_cli(*mine, "experiment=types")
    assert done.code == 2
    assert done.err.startswith("Nothing was started: 8 problems.")
    assert "Hydra" not in done.err


def test_with_a_stock_launcher_a_failing_point_neither_ends_the_sweep_nor_hides(
    run_cli: RunCli, tmp_path: Path
) -> None:
    points = ("steps=8", "platform.env.STUB=noise,fail_at=2,signal_at=2:SIGSEGV,silent_log")
    done = run_cli("--multirun", "hydra/launcher=basic", *QUICK, *points, f"sweep.dir={tmp_path}/sweep")
    assert done.code == 1
    assert read_states(tmp_path / "sweep") == ["completed", "failed", "failed", "completed"]
    assert "Error executing job" not in done.err
    assert "[HYDRA]" not in done.out + done.err
    assert "Traceback" not in done.err
    assert f"Sweep folder: {tmp_path}/sweep" in done.out


def test_a_stock_launcher_has_one_default_folder_with_our_names_and_skips_what_is_done(
    run_cli: RunCli, tmp_path: Path
) -> None:
    points = ("--multirun", *QUICK, "steps=6,7")
    command = (*points, "hydra/launcher=basic")
    assert run_cli(*command).code == 0
    (sweep,) = (tmp_path / "outputs").iterdir()
    before = {file: file.read_bytes() for file in sweep.glob("*/run.json")}
    assert len(before) == 2
    assert run_cli(*command, f"sweep.dir={sweep}").code == 0
    assert {file: file.read_bytes() for file in before} == before
    assert run_cli(*points, "action=export", f"sweep.dir={tmp_path}/ours").code == 0
    assert {file.parent.name for file in (tmp_path / "ours").glob("*/run.json")} == {
        file.parent.name for file in before
    }


@pytest.mark.slow
def test_how_a_sweep_is_treated_does_not_change_where_its_points_lie(run_cli: RunCli, tmp_path: Path) -> None:
    command = ("--multirun", *QUICK, "steps=6")
    first = run_cli(*command, f"sweep.dir={tmp_path}/x/../sweep")
    again = run_cli(*command, f"sweep.dir={tmp_path}/sweep", "sweep.max_parallel=2", "sweep.retries=1")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert len(list_slugs(tmp_path / "sweep")) == 1
    assert "completed in an earlier start" in " ".join(again.out.split())


def test_a_sweep_is_taken_up_again_from_its_folder_alone(run_cli: RunCli, tmp_path: Path) -> None:
    assert run_cli("--multirun", *QUICK, "steps=6,7,8", "sweep.dir=sweep").code == 0
    names = list_slugs(tmp_path / "sweep")
    shutil.rmtree(next((tmp_path / "sweep").glob("0001-*")))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = run_cli("sweep.resume=../sweep", "sweep.max_parallel=2", cwd=elsewhere)
    assert done.code == 0, done.err
    assert list_slugs(tmp_path / "sweep") == names
    assert list(elsewhere.iterdir()) == []


def test_what_is_no_sweep_folder_cannot_be_taken_up(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli(f"sweep.resume={tmp_path}")
    assert done.code == 2
    assert f"sweep.resume={tmp_path} is not a sweep folder" in done.err


def run_shipped(run_cli: RunCli, name: str, folder: Path) -> Finished:
    """What the first comment of a shipped sweep says to type, up to the export."""
    lines = (conf_dir() / "sweep" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    command = lines[1].removeprefix("# python -m primus_hydra ")
    assert command != lines[1]
    return run_cli(*command.split(), "platform=mi300x", "data=synthetic", "action=export", f"sweep.dir={folder}")


@pytest.mark.parametrize("name", list_choices([conf_dir()], "sweep"))
def test_every_shipped_sweep_makes_runs_that_differ(run_cli: RunCli, tmp_path: Path, name: str) -> None:
    done = run_shipped(run_cli, name, tmp_path / "sweep")
    assert done.code == 0, done.err
    records = [json.loads(file.read_text(encoding="utf-8")) for file in (tmp_path / "sweep").glob("*/run.json")]
    first = [record for record in records if record.get("repeat", 1) == 1]
    assert len(first) > 1
    assert len({record["fingerprint"] for record in first}) == len(first)


def test_hydras_plugin_scan_imports_nothing_of_the_program() -> None:
    script = (
        "import sys, hydra_plugins.primus_hydra_launcher.local, hydra_plugins.primus_hydra_sweeper.grid\n"
        "print([name for name in sys.modules if name.startswith(('primus_hydra', 'rich', 'pandas', 'optuna'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_sweep_file_without_its_package_line_is_explained(run_cli: RunCli, tmp_path: Path) -> None:
    mine = write_presets(tmp_path / "mine")
    (tmp_path / "mine" / "sweep").mkdir()
    (tmp_path / "mine" / "sweep" / "flat.yaml").write_text("sweep: {grid: {steps: [6, 7]}}\n", encoding="utf-8")
    done = run_cli(*mine, "--multirun", *QUICK, "sweep=flat")
    assert done.code == 2
    assert "Write `# @package _global_` in its first line" in done.err


def test_a_grid_that_chooses_presets_with_grids_of_their_own_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    mine = write_presets(
        tmp_path / "mine",
        inner="sweep: {grid: {steps: [6, 7]}}\n",
        outer="sweep: {grid: {experiment: [inner]}}\n",
    )
    (tmp_path / "mine" / "sweep").mkdir()
    (tmp_path / "mine" / "experiment" / "outer.yaml").rename(tmp_path / "mine" / "sweep" / "outer.yaml")
    done = run_cli(*mine, "--multirun", *QUICK, "sweep=outer")
    assert done.code == 2
    assert "experiment=inner is a value in a grid" in done.err


@pytest.mark.slow
def test_a_thousand_points_are_planned_in_less_than_a_minute() -> None:
    script = [sys.executable, str(REPOSITORY / "benchmarks" / "planning.py")]
    done = subprocess.run(
        script, cwd=REPOSITORY, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True
    )
    found = re.search(r"^1000 points: ([0-9.]+) s", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    assert float(found[1]) < 60
