"""Real MaxText on the CPU, through the program as a person starts it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunCli

TINY = ("model=tiny", "data=synthetic", "platform=cpu", "base_emb_dim=32", "base_mlp_dim=64", "max_target_length=64")


def _read(folder: Path, name: str) -> dict[str, Any]:
    text = (folder / name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    return content


def test_a_small_model_learns_from_real_text(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = run_cli(
        "experiment=demo", "steps=16", f"run.dir={folder}", env={"M_STEPS": "7", "HF_TOKEN": "hf_SENTINEL0123456789abc"}
    )
    assert done.code == 0, done.err
    assert "M_STEPS" in done.err
    assert "step 16/16" in done.out
    assert "completed" in done.out
    record, effective = _read(folder, "run.json"), _read(folder, "effective.json")
    assert (record["state"], record["failure"], record["exit_code"]) == ("completed", None, 0)
    assert effective["differences"] == []
    assert effective["keys"]["steps"] == 16
    assert "hf_access_token" not in effective["keys"]
    result = record["result"]
    assert (result["num_steps"], result["num_steps_measured"], result["platform"]) == (16, 13, "cpu")
    assert result["final_loss"] < result["first_loss"] - 2
    assert result["tokens_per_second_per_device"] > 0
    assert result["compile_time_s"] > 0
    assert result["peak_host_memory_gib"] > 0.3
    assert record["versions"]["maxtext"] == "0.2.5"
    leaks = [file for file in tmp_path.rglob("*") if file.is_file() and b"SENTINEL" in file.read_bytes()]
    assert leaks == []


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_a_failure(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = run_cli(*TINY, "steps=8", "learning_rate=1e30", "warmup_steps_fraction=0", f"run.dir={folder}")
    assert done.code == 1
    record = _read(folder, "run.json")
    assert (record["state"], record["failure"]) == ("failed", "not_finite_loss")
    assert "not finite at step" in record["reason"]
    assert record["result"]["final_loss"] is None


@pytest.mark.slow
def test_three_steps_are_too_few_for_a_figure(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli(*TINY, "steps=3", f"run.dir={tmp_path / 'run'}")
    assert done.code == 0, done.err
    assert "too few steps" in done.out
    assert _read(tmp_path / "run", "run.json")["result"]["tokens_per_second_per_device"] is None


@pytest.mark.slow
def test_text_that_runs_out_is_told(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("One line of text.\n" * 40, encoding="utf-8")
    done = run_cli(*TINY, "data=local_text", "hf_train_files=short.txt", "steps=500", f"run.dir={tmp_path / 'run'}")
    assert done.code == 1
    record = _read(tmp_path / "run", "run.json")
    assert (record["exit_code"], record["state"], record["failure"]) == (0, "failed", "incomplete")
    assert "data" in record["reason"]


@pytest.mark.slow
def test_training_continues_from_its_checkpoint_and_never_from_anothers(run_cli: RunCli, tmp_path: Path) -> None:
    common = (
        *TINY,
        "enable_checkpointing=true",
        "async_checkpointing=false",
        f"base_output_directory={tmp_path / 'shared'}",
    )
    first = run_cli(*common, "run_name=mine", "steps=4", f"run.dir={tmp_path / 'a'}")
    assert first.code == 0, first.err
    second = run_cli(*common, "run_name=mine", "steps=7", f"run.dir={tmp_path / 'b'}")
    assert second.code == 0, second.err
    assert "resumed at step 4" in second.out
    record = _read(tmp_path / "b", "run.json")
    assert (record["resumed_at_step"], record["result"]["first_step"], record["result"]["last_step"]) == (4, 4, 6)
    third = run_cli(*common, "run_name=mine", "quantization=int8", "steps=7", f"run.dir={tmp_path / 'c'}")
    assert third.code == 2
    assert "belongs to another configuration" in third.err
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_a_resolved_value_that_differs_stops_the_run_before_its_first_step(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    model = ("model=model_base", "model_name=gpt3-52k", "base_emb_dim=32", "data=synthetic", "platform=cpu")
    assert run_cli(*model, "steps=4", "action=export", f"run.dir={folder}").code == 0
    # The record says 32; without its arguments MaxText takes its model file's 16.
    command = _read(folder, "command.json")
    command["maxtext_args"] = command["maxtext_args"][:1]
    (folder / "command.json").write_text(json.dumps(command), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "primus_hydra.worker", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    record = _read(folder, "run.json")
    assert (record["state"], record["failure"]) == ("failed", "config")
    assert not (folder / "metrics.jsonl").exists()
    difference = next(
        found for found in _read(folder, "effective.json")["differences"] if found["key"] == "base_emb_dim"
    )
    assert (difference["composed"], difference["resolved"]) == (32, 16)
    assert difference["composed_origin"] == "command line: base_emb_dim=32"
    assert difference["resolved_origin"] == "MaxText's model file"
    assert "base_emb_dim" in done.stdout


@pytest.mark.slow
def test_the_recorded_command_gives_plain_maxtext_the_same_configuration(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    model = ("model=model_base", "model_name=gpt3-52k", "attention=dot_product", "base_emb_dim=32", "data=synthetic")
    rules = "logical_axis_rules=[[mlp,[fsdp]]]"
    done = run_cli(*model, "platform=cpu", "steps=4", rules, "log_config=true", f"run.dir={folder}")
    assert done.code == 0, done.err
    plain = subprocess.run(
        ["bash", str(folder / "command.sh")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr[-2000:]
    ours = _config_lines((folder / "train.log").read_text(encoding="utf-8"))
    assert len(ours) > 800
    assert _config_lines(plain.stderr) == ours
    assert _read(folder, "effective.json")["keys"]["base_emb_dim"] == 32
    assert len(_read(folder, "effective.json")["keys"]["logical_axis_rules"]) > 70


def _config_lines(log: str) -> dict[str, str]:
    pairs = (line.partition("Config param ")[2].partition(": ") for line in log.splitlines() if "Config param " in line)
    return {key: value for key, _, value in pairs}


@pytest.mark.slow
def test_a_gpu_recipe_without_a_gpu_is_refused_unless_asked(run_cli: RunCli, tmp_path: Path) -> None:
    gpu = (*TINY, "platform=mi300x", "hardware=gpu", "attention=dot_product", "profiler=", "steps=4")
    refused = run_cli(*gpu, f"run.dir={tmp_path / 'no'}")
    assert refused.code == 2
    assert "no_gpu" in refused.err
    done = run_cli(*gpu, "run.accept=[no_gpu]", f"run.dir={tmp_path / 'yes'}", "platform.env.JAX_PLATFORMS=cpu")
    assert done.code == 0, done.err
    assert _read(tmp_path / "yes", "run.json")["result"]["platform"] == "cpu"


@pytest.mark.slow
def test_check_validates_through_maxtext_without_training(run_cli: RunCli, tmp_path: Path) -> None:
    good = run_cli("experiment=llama3_8B", "platform=mi300x", "action=check")
    assert good.code == 0, good.err
    assert "resolves it as composed" in good.out
    # Only MaxText knows that this optimizer and this decoder do not go together.
    bad = run_cli(*TINY, "decoder_block=gpt3", "opt_type=muon", "action=check")
    assert bad.code == 2
    assert "MaxText does not accept this configuration" in bad.err
    assert list(tmp_path.iterdir()) == []
