"""The winner as a preset: composed again through the command line, it is exactly the winning configuration."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from primus_hydra.interpolation import escape_interpolations
from primus_hydra.own_command import own_command
from primus_hydra.report.best import BEST, PRESETS, write_best
from primus_hydra.report.read import read_report
from primus_hydra.report.winner_config import PLACES
from primus_hydra.xla_flags import parse_flags
from tests.conftest import RunCli
from tests.report_runs import make_report, make_result, make_run, write_log

TRICKY = "a ${b} \\${c} \\\\${d} 'e' \"f\" # g: [h] é"


def complete(folder: Path, tokens: float = 1000.0, **changes: Any) -> None:
    """Turn a planned run folder into a completed one."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record |= {"state": "completed", "failure": None, "result": make_result(tokens)} | changes
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


def read_yaml(path: Path) -> dict[str, Any]:
    keys = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    assert isinstance(keys, dict)
    return {str(key): value for key, value in keys.items() if key not in PLACES}


def read_command(folder: Path) -> dict[str, Any]:
    """What reaches the trainer besides maxtext.yml, places aside; XLA flags one by one, since their order is free."""
    command = json.loads((folder / "command.json").read_text(encoding="utf-8"))
    flags = parse_flags(command["env"].pop("XLA_FLAGS"))
    arguments = [text for text in command["maxtext_args"][1:] if text.partition("=")[0] not in PLACES]
    return {"env": command["env"], "flags": flags, "args": sorted(arguments), "trainer": command["trainer"]}


def read_settings(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    settings = record["settings"]
    settings["run"].pop("dir")
    settings["platform"].pop("env")
    settings["platform"].pop("xla_flags")
    return {"settings": settings, "private": record["private"]}


def assert_same_run(again: Path, winner: Path) -> None:
    assert read_yaml(again / "maxtext.yml") == read_yaml(winner / "maxtext.yml")
    assert read_command(again) == read_command(winner)
    assert read_settings(again) == read_settings(winner)


POINTS = {
    "defaults": (),
    "another model with a model file of its own": (
        *("model=llama3_8B", "platform=mi300x", "precision=fp8", "base_num_decoder_layers=4", "remat_policy=minimal"),
        *("logical_axis_rules=[[mlp,[fsdp]]]", "run.warmup_steps=5", "run.timeout_s=100"),
    ),
    "a published recipe": ("experiment=deepseek_v2_16B", "platform=mi355x", "run.accept=[]"),
    "environment and flags": (
        *("platform=mi300x", "platform.env.GPU_MAX_HW_QUEUES=4", "platform.env.HIP_FORCE_DEV_KERNARG=null"),
        *("platform.env.NVTE_X='1e3'", "platform.xla_flags.xla_gpu_autotune_level=5", "platform.devices_per_node=4"),
        *("platform.xla_flags.xla_gpu_enable_cublaslt=null", "platform.xla_flags.xla_dump_to='a b'"),
    ),
    "texts that look like something else": (
        *(
            "run_name=2024_01_01",
            "wandb_run_name=1e3",
            "steps=1e2",
            "hf_path=yes",
            "hf_name=0x10",
            "sink_level=WARNING",
        ),
        *("platform=cpu", "data=local_text", "platform.devices_per_node=2", "mlp_activations=[silu,linear]"),
    ),
    "another trainer": ("platform=cpu", f"run.trainer=[{sys.executable},'my trainer.py']"),
    "a deleted key": ("platform=mi300x", "~megablox", "~use_iota_embed"),
}


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(texts, id=name, marks=[] if name == "defaults" else pytest.mark.slow)
        for name, texts in POINTS.items()
    ],
)
def test_the_preset_composes_to_exactly_the_winning_configuration(
    overrides: tuple[str, ...], run_cli: RunCli, tmp_path: Path
) -> None:
    winner, again = tmp_path / "sweep" / "0000-x", tmp_path / "again"
    done = run_cli("action=export", f"run.dir={winner}", *overrides)
    assert done.code == 0, done.err
    complete(winner)
    told, problems = write_best(read_report([winner.parent]), winner.parent)
    assert problems == []
    command = own_command("primus_hydra", "--config-dir", str(winner.parent / PRESETS), "experiment=best")
    assert told == f"The best again: {command}"
    done = run_cli("--config-dir", str(winner.parent / PRESETS), "experiment=best", "action=export", f"run.dir={again}")
    assert done.code == 0, done.err
    assert_same_run(again, winner)


def test_what_the_shell_had_set_is_in_the_preset_and_another_shell_changes_nothing(
    run_cli: RunCli, tmp_path: Path
) -> None:
    winner, again = tmp_path / "sweep" / "0000-x", tmp_path / "again"
    shell = {
        "GPU_MAX_HW_QUEUES": "7",
        "NCCL_DEBUG": "INFO",
        "XLA_FLAGS": "--xla_gpu_autotune_level=2 --xla_dump_hlo_as_text --xla_gpu_enable_command_buffer=''",
        "WANDB_API_KEY": "secret-secret",
    }
    overrides = ("platform=mi300x", "platform.env.WANDB_API_KEY=abcdefghijk")
    assert run_cli("action=export", f"run.dir={winner}", *overrides, env=shell).code == 0
    complete(winner)
    write_best(read_report([winner.parent]), winner.parent)
    text = (winner.parent / BEST).read_text(encoding="utf-8")
    assert "secret" not in text
    assert "abcdefghijk" not in text
    other = {"GPU_MAX_HW_QUEUES": "1", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}
    arguments = ("--config-dir", str(winner.parent / PRESETS), "experiment=best", "action=export", f"run.dir={again}")
    assert run_cli(*arguments, env=other).code == 0
    expected = read_command(winner)
    expected["flags"]["xla_dump_hlo_as_text"] = "true"
    assert read_command(again) == expected


def test_presets_of_the_users_own_are_not_needed_again(run_cli: RunCli, tmp_path: Path) -> None:
    presets, winner, again = tmp_path / "mine", tmp_path / "sweep" / "0000-x", tmp_path / "again"
    for name, text in {
        # Replaces a preset that ships, and has fewer keys.
        "model/tiny": "attention: dot_product\n",
        "platform/cluster": "defaults: [mi300x, _self_]\nplatform:\n  name: cluster\n  env: {MY_SWITCH: 'on'}\n",
        "data/corpus": f"dataset_type: synthetic\nhf_path: {json.dumps(escape_interpolations(TRICKY))}\n",
        "experiment/study": f"steps: 77\nrun:\n  trainer: [python, {json.dumps(escape_interpolations(TRICKY))}]\n",
    }.items():
        (presets / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (presets / f"{name}.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    choices = ("model=tiny", "platform=cluster", "data=corpus", "experiment=study")
    done = run_cli(
        "--config-dir", str(presets), *choices, "action=export", f"run.dir={winner}", "max_target_length=128"
    )
    assert done.code == 0, done.err
    complete(winner)
    write_best(read_report([winner.parent]), winner.parent)
    done = run_cli("--config-dir", str(winner.parent / PRESETS), "experiment=best", "action=export", f"run.dir={again}")
    assert done.code == 0, done.err
    assert_same_run(again, winner)
    assert read_yaml(winner / "maxtext.yml")["hf_path"] == read_command(winner)["trainer"][1] == TRICKY
    head = (winner.parent / BEST).read_text(encoding="utf-8").partition("defaults:")[0]
    assert "# Values of model=tiny, data=corpus, platform=cluster are written out" in head


def test_a_winner_that_was_made_from_a_winner_is_the_same_again(run_cli: RunCli, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name / "0000-x" for name in ("first", "second", "third"))
    assert run_cli("action=export", f"run.dir={first}", "platform=cpu", "~use_iota_embed").code == 0
    for folder, again in ((first, second), (second, third)):
        complete(folder)
        write_best(read_report([folder.parent]), folder.parent)
        arguments = ("--config-dir", str(folder.parent / PRESETS), "experiment=best", "action=export")
        assert run_cli(*arguments, f"run.dir={again}").code == 0
    assert_same_run(third, first)


def test_the_preset_says_its_command_score_ties_and_what_differs_first(run_cli: RunCli, tmp_path: Path) -> None:
    sweep = tmp_path / "sw eep"
    for index, policy in enumerate(("full", "minimal", "qkv_proj_offloaded")):
        folder = sweep / f"000{index}-{policy}"
        overrides = ["platform=cpu", f"remat_policy={policy}", "steps=20"]
        assert run_cli("action=export", f"run.dir={folder}", *overrides).code == 0
        complete(folder, 1000 + index, overrides=overrides)
    write_best(read_report([sweep]), sweep)
    lines = (sweep / BEST).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1] == f"# python -m primus_hydra --config-dir '{sweep / PRESETS}' experiment=best"
    assert "# 1,002 tokens/s/device (992.1 to 1,012): remat_policy=qkv_proj_offloaded" in lines
    assert [line for line in lines if line.startswith("# Not to be told apart from:")] == [
        "# Not to be told apart from: remat_policy=minimal",
        "# Not to be told apart from: remat_policy=full",
    ]
    start = lines.index("# What differs between the points.")
    assert lines[start + 1 : start + 4] == ["remat_policy: qkv_proj_offloaded", "", "# What they share."]
    content = yaml.safe_load((sweep / BEST).read_text(encoding="utf-8"))
    assert not content.keys() & PLACES
    assert "tokenizer_path" not in content  # lies elsewhere on another machine; the model's preset knows where


def test_of_repeats_the_first_with_figures_is_written(run_cli: RunCli, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    for repeat, suffix in enumerate(("", "-repeat2", "-repeat3"), start=1):
        assert run_cli("action=export", f"run.dir={sweep}/0000-x{suffix}", "platform=cpu").code == 0
        complete(sweep / f"0000-x{suffix}", repeat=repeat, state="failed" if repeat == 1 else "completed")
    write_best(read_report([sweep]), sweep)
    text = (sweep / BEST).read_text(encoding="utf-8")
    assert f"# Run folder: {sweep}/0000-x-repeat2\n" in text


def test_without_a_winner_there_is_no_file_and_an_earlier_one_goes(tmp_path: Path) -> None:
    (tmp_path / BEST).parent.mkdir(parents=True)
    (tmp_path / BEST).write_text("# of yesterday", encoding="utf-8")
    told, problems = write_best(make_report(make_run("a", state="failed")), tmp_path)
    assert (told, problems) == ("No run has a score. So there is no presets/experiment/best.yaml.", [])
    assert not (tmp_path / BEST).exists()
    going = make_report(make_run("a", state="failed"), make_run("b", state="running", result={}))
    assert write_best(going, tmp_path) == ("No run has a score yet.", [])


def test_a_foreign_winner_has_no_preset_and_one_that_is_tied_with_ours_has(run_cli: RunCli, tmp_path: Path) -> None:
    write_log(tmp_path / "sweep" / "theirs" / "train.log", [0.5] * 8)
    told, problems = write_best(read_report([tmp_path / "sweep"]), tmp_path)
    assert told.startswith("The best is theirs, which was run without primus_hydra: nothing proves its configuration.")
    assert problems == []
    assert run_cli("action=export", f"run.dir={tmp_path}/sweep/ours", "platform=cpu").code == 0
    complete(tmp_path / "sweep" / "ours", 1999)
    told, _ = write_best(read_report([tmp_path / "sweep"]), tmp_path)
    assert told.startswith("The best again:")
    assert "# Not to be told apart from: theirs" in (tmp_path / BEST).read_text(encoding="utf-8")


def test_a_run_folder_that_cannot_be_read_or_a_place_that_cannot_be_written_is_told(
    run_cli: RunCli, tmp_path: Path
) -> None:
    run = tmp_path / "sweep" / "x"
    assert run_cli("action=export", f"run.dir={run}", "platform=cpu").code == 0
    complete(run)
    report = read_report([run.parent])
    (tmp_path / "presets").write_text("in the way", encoding="utf-8")
    assert write_best(report, tmp_path)[1] == [f"{tmp_path / BEST} could not be written: Not a directory."]
    (run / "command.json").unlink()
    told, problems = write_best(report, run.parent)
    assert told == ""
    assert "could not be written as a preset" in problems[0]
    assert "command.json does not exist" in problems[0]


def test_a_name_cannot_break_out_of_its_comment(run_cli: RunCli, tmp_path: Path) -> None:
    run = tmp_path / "sweep" / "x"
    assert run_cli("action=export", f"run.dir={run}", "platform=cpu").code == 0
    complete(run, overrides=["a=b\nsteps: 999\x85x: 1\u2028y: 2"])
    other = tmp_path / "sweep" / "y"
    other.mkdir()
    record = json.loads((run / "run.json").read_text(encoding="utf-8")) | {"overrides": ["a=c"]}
    (other / "run.json").write_text(json.dumps(record), encoding="utf-8")
    write_best(read_report([run.parent]), run.parent)
    content = yaml.safe_load((run.parent / BEST).read_text(encoding="utf-8"))
    assert (content["steps"], "x" in content, "y" in content) == (1000, False, False)


@pytest.mark.slow
def test_the_preset_of_a_real_sweep_trains_again(run_cli: RunCli, tmp_path: Path) -> None:
    stub = Path(__file__).parent / "trainers" / "stub_trainer.py"
    sweep, again = tmp_path / "sweep", tmp_path / "again"
    points = (
        "remat_policy=full,minimal",
        "platform.xla_flags.xla_cpu_enable_fast_math=true,false",
        "steps=20",
        "platform=cpu",
    )
    done = run_cli("--multirun", *points, f"run.trainer=[{sys.executable},{stub}]", f"sweep.dir={sweep}")
    assert done.code == 0, done.err
    command = [sys.executable, "-m", "primus_hydra.report", str(sweep), "--no-page"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    done = run_cli("--config-dir", str(sweep / PRESETS), "experiment=best", f"run.dir={again}")
    assert done.code == 0, done.err
    winner = next(run.folder for run in read_report([sweep]).runs if run.name == read_report([sweep]).rows[0].point)
    assert_same_run(again, winner)
