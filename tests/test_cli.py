"""The program as a person types it: exit codes, messages, what is left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import REPOSITORY, RunCli

AMD = ("platform=mi300x", "action=export")


def _export(run_cli: RunCli, folder: Path, *overrides: str, **more: Any) -> dict[str, Any]:
    """Export and return the file that MaxText reads."""
    done = run_cli(*overrides, "action=export", f"run.dir={folder}", **more)
    assert done.code == 0, done.err
    content: dict[str, Any] = yaml.safe_load((folder / "maxtext.yml").read_text(encoding="utf-8"))
    return content


def test_the_mission_command_exports_a_configuration_for_mi300x(run_cli: RunCli, tmp_path: Path) -> None:
    keys = _export(run_cli, tmp_path / "run", "model=llama3_8B", "steps=2000", "platform=mi300x")
    assert keys["model_name"] == "llama3-8b"
    assert keys["steps"] == 2000
    assert keys["base_config"] == "base.yml"
    assert not {"action", "run", "platform", "trainable", "stderr_sink_level", "explain"} & keys.keys()
    command = json.loads((tmp_path / "run" / "command.json").read_text(encoding="utf-8"))
    assert "override_model_config=true" in command["maxtext_args"] or command["maxtext_args"][1:] == []
    assert command["env"]["JAX_PLATFORMS"] == "rocm,cpu"


def test_keys_of_the_model_file_travel_as_arguments(run_cli: RunCli, tmp_path: Path) -> None:
    overrides = ("model=llama3_8B", "base_num_decoder_layers=4", "logits_via_embedding=true", "platform=mi300x")
    _export(run_cli, tmp_path / "run", *overrides)
    arguments = json.loads((tmp_path / "run" / "command.json").read_text(encoding="utf-8"))["maxtext_args"]
    assert arguments[0] == str(tmp_path / "run" / "maxtext.yml")
    assert {"override_model_config=true", "base_num_decoder_layers=4", "logits_via_embedding=true"} <= set(arguments)


def test_all_problems_are_told_at_once_and_nothing_is_left_behind(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli(
        "model=llama3_8B", "lr=3", "steps=abc", "remat_policy=fulll", "dropout_rate=2", *AMD, f"run.dir={tmp_path}/run"
    )
    assert done.code == 2
    assert done.err.startswith("Nothing was started: 4 problems.")
    assert all(word in done.err for word in ("learning_rate", "steps='abc'", "remat_policy=full?", "at most 1"))
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_no_preset_mentions_needs_no_plus(run_cli: RunCli, tmp_path: Path) -> None:
    assert _export(run_cli, tmp_path / "run", "model=tiny", "adam_b2=0.9")["adam_b2"] == 0.9


def test_text_stays_the_text_that_was_typed(run_cli: RunCli, tmp_path: Path) -> None:
    for text in ("2024_01_01", "695e0514", "1e3", "true", "007"):
        assert _export(run_cli, tmp_path / text, "model=tiny", f"run_name={text}")["run_name"] == text


def test_a_typo_in_a_users_preset_is_refused_with_the_file(run_cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "mine" / "model" / "small.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# @package _global_\ndefaults: [model_base, _self_]\nremat_polcy: full\n", encoding="utf-8")
    done = run_cli("--config-dir", str(tmp_path / "mine"), "model=small", "action=export")
    assert done.code == 2
    assert "remat_polcy is not a key" in done.err
    assert f"{file} (model=small)" in done.err


def test_a_users_preset_adds_and_overrides_by_name(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "model"
    folder.mkdir(parents=True)
    (folder / "tiny.yaml").write_text(
        "# @package _global_\ndefaults: [model_base, _self_]\nbase_emb_dim: 64\n", encoding="utf-8"
    )
    keys = _export(run_cli, tmp_path / "run", "--config-dir", str(tmp_path / "mine"), "model=tiny", "data=synthetic")
    assert keys["base_emb_dim"] == 64
    assert "base_mlp_dim" not in keys


def test_a_preset_without_its_package_line_is_explained(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "model"
    folder.mkdir(parents=True)
    (folder / "flat.yaml").write_text("base_emb_dim: 64\n", encoding="utf-8")
    done = run_cli("--config-dir", str(tmp_path / "mine"), "model=flat", "action=export")
    assert done.code == 2
    assert "# @package _global_" in done.err


def test_unfilled_values_are_listed_together(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    text = "# @package _global_\nbase_output_directory: ???\nhf_path: <changeme>\n"
    (folder / "holes.yaml").write_text(text, encoding="utf-8")
    done = run_cli("--config-dir", str(tmp_path / "mine"), "experiment=holes", "action=export")
    assert done.code == 2
    assert "base_output_directory has to be filled in" in done.err
    assert "hf_path has to be filled in" in done.err


def test_an_interpolation_that_fails_beside_unfilled_values_is_explained(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "platform").mkdir()
    preset = "# @package _global_\nplatform:\n  env: {NCCL_DEBUG: '${nope}'}\n"
    (tmp_path / "platform" / "mine.yaml").write_text(preset, encoding="utf-8")
    done = run_cli("--config-dir", str(tmp_path), "platform=mine", "model=tiny")
    assert done.code == 2
    assert "The settings under platform cannot be read: Interpolation key 'nope' not found" in done.err
    assert "Traceback" not in done.err


def test_paths_start_where_the_command_was_typed(run_cli: RunCli, tmp_path: Path) -> None:
    keys = _export(
        run_cli, tmp_path / "run", "model=tiny", "base_output_directory=./my output", "enable_checkpointing=true"
    )
    assert keys["base_output_directory"] == str(tmp_path / "my output")
    remote = _export(run_cli, tmp_path / "remote", "model=tiny", "base_output_directory=gs://b/x")
    assert remote["base_output_directory"] == "gs://b/x"


def test_relative_run_dirs_and_default_ones_are_reported(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("model=tiny", "action=export", "run.dir=here")
    assert f"Exported to {tmp_path / 'here'}" in done.out
    first, second = (run_cli("model=tiny", "action=export").out.split()[-1] for _ in range(2))
    assert first != second
    assert Path(first).parent == tmp_path / "outputs"


def test_the_order_of_presets_does_not_depend_on_the_order_typed(run_cli: RunCli, tmp_path: Path) -> None:
    choices = ["model=llama3_8B", "data=synthetic", "platform=mi300x", "experiment=llama3_8B", "steps=7"]
    one = _export(run_cli, tmp_path / "a" / "run", *choices)
    two = _export(run_cli, tmp_path / "b" / "run", *reversed(choices))
    moved = {"run_name", "base_output_directory", "metrics_file"}
    assert {key: value for key, value in one.items() if key not in moved} == {
        key: value for key, value in two.items() if key not in moved
    }


@pytest.mark.parametrize(
    ("layers", "value"),
    [
        ((), None),
        (("module",), 11),
        (("module", "model"), 12),
        (("module", "model", "data"), 13),
        (("module", "model", "data", "platform"), 14),
        (("module", "model", "data", "platform", "experiment"), 15),
        (("module", "experiment"), 15),
        (("model", "platform"), 14),
    ],
)
def test_the_later_group_wins_and_the_command_line_wins_over_all(
    run_cli: RunCli, tmp_path: Path, layers: tuple[str, ...], value: int | None
) -> None:
    groups = {
        "module": ("pre_trainer", 11),
        "model": ("model_base", 12),
        "data": ("synthetic", 13),
        "platform": ("cpu", 14),
        "experiment": (None, 15),
    }
    chosen = ["data=synthetic", "model=tiny", "platform=cpu"]
    for group in layers:
        base, number = groups[group]
        file = tmp_path / "mine" / group / "here.yaml"
        file.parent.mkdir(parents=True)
        defaults = f"defaults: [{base}, _self_]\n" if base else ""
        extra = (
            "vocab_size: 256\nmax_target_length: 128\nper_device_batch_size: 1\nbase_emb_dim: 64\n"
            if group == "model"
            else ""
        )
        file.write_text(f"# @package _global_\n{defaults}log_period: {number}\n{extra}", encoding="utf-8")
        chosen = [text for text in chosen if not text.startswith(f"{group}=")] + [f"{group}=here"]
    folder = ("--config-dir", str(tmp_path / "mine")) if layers else ()
    keys = _export(run_cli, tmp_path / "run", *folder, *chosen)
    assert keys["log_period"] == (value or 100)
    if layers:
        assert _export(run_cli, tmp_path / "typed", *folder, *chosen, "log_period=9")["log_period"] == 9


def test_explain_tells_each_keys_value_and_origin(run_cli: RunCli) -> None:
    done = run_cli("model=llama3_8B", "steps=2_000", "platform=mi300x", "precision=fp8", "action=explain")
    assert done.code == 0, done.err
    values = yaml.safe_load(done.out)
    assert (values["steps"], values["quantization"], values["model_name"]) == (2000, "nanoo_fp8", "llama3-8b")
    origins = {line.split(":")[0]: line.split("  # ")[1] for line in done.out.splitlines() if "  # " in line}
    assert origins["steps"] == "command line: steps=2_000"
    assert origins["quantization"] == "conf/precision/fp8.yaml (precision=fp8)"
    assert origins["attention"] == "conf/model/model_base.yaml (model=llama3_8B)"
    assert origins["run_name"] == "primus_hydra"
    assert "#   JAX_PLATFORMS=rocm,cpu  (platform mi300x)" in done.out
    assert "#   --xla_gpu_autotune_level=4  (platform mi300x)" in done.out
    assert "more keys have MaxText's own values" in done.out


def test_explain_tells_what_would_be_refused_and_explains_all_the_same(run_cli: RunCli) -> None:
    done = run_cli("model=llama3_8B", "platform=mi300x", "remat_policy=fulll", "action=explain")
    assert done.code == 0
    assert yaml.safe_load(done.out)["remat_policy"] == "fulll"
    assert "is not a policy that MaxText has" in done.err


def test_explain_lists_maxtexts_own_values_on_request(run_cli: RunCli) -> None:
    done = run_cli("model=llama3_8B", "platform=mi300x", "action=explain", "explain.defaults=true")
    values = yaml.safe_load(done.out)
    assert len(values) > 850
    assert values["base_emb_dim"] == 4096
    assert "MaxText's llama3-8b.yml" in done.out


def test_hydras_own_options_keep_working(run_cli: RunCli) -> None:
    job = run_cli("model=llama3_8B", "steps=7", "--cfg", "job")
    assert job.code == 0, job.err
    assert yaml.safe_load(job.out)["steps"] == 7
    assert run_cli("--info", "defaults").code == 0
    assert "model=llama3_8B" in run_cli(
        "-sc", "query=bash", env={"COMP_LINE": "primus-hydra model=lla", "COMP_POINT": "22"}
    ).out.replace("\n", " ")


def test_a_sweep_over_models_takes_a_key_that_the_default_model_lacks(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", "model=grok1,llama3_8B", "attention=dot_product", "adam_b2=0.9", *AMD)
    assert done.code == 0, done.err
    files = sorted(tmp_path.glob("outputs/sweep-*/0*/maxtext.yml"))
    exported = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    assert [keys["attention"] for keys in exported] == ["dot_product", "dot_product"]
    assert len({(keys["run_name"], keys["base_output_directory"]) for keys in exported}) == 2


def test_a_sweep_that_holds_an_empty_text_works(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("--multirun", "model=llama3_8B", "remat_policy=full,minimal", 'quantization="",nanoo_fp8', *AMD)
    assert done.code == 0, done.err
    assert len(list(tmp_path.glob("outputs/sweep-*/0*/maxtext.yml"))) == 4


def test_a_refused_command_leaves_no_folder_and_the_same_run_dir_serves_the_same_config_only(
    run_cli: RunCli, tmp_path: Path
) -> None:
    _export(run_cli, tmp_path / "run", "model=tiny")
    _export(run_cli, tmp_path / "run", "model=tiny")
    done = run_cli("model=tiny", "quantization=int8", "action=export", f"run.dir={tmp_path / 'run'}")
    assert done.code == 2
    assert "belongs to another configuration (quantization: '' there, 'int8' now)" in done.err


def test_maxtexts_model_file_is_not_contradicted_without_the_flag(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("model=llama3_8B", "platform=mi300x", "override_model_config=false", "action=export")
    refused = run_cli(*common, "base_num_decoder_layers=4")
    assert refused.code == 2
    assert "base_num_decoder_layers=4 is set, but MaxText's model file for llama3-8b says 32" in refused.err
    assert "override_model_config=true" in refused.err
    assert run_cli(*common, "base_num_decoder_layers=32", f"run.dir={tmp_path}/run").code == 0


def test_secrets_are_written_nowhere(run_cli: RunCli, tmp_path: Path) -> None:
    sentinel = "hf_SENTINEL0123456789abcdef"
    mine = tmp_path / "mine" / "experiment" / "leaky.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("# @package _global_\nhf_access_token: ${oc.env:MY_TOKEN}\n", encoding="utf-8")
    typed = (
        f"hf_access_token={sentinel}",
        f"platform.env.WANDB_API_KEY={sentinel}2",
        "platform.env.DB_PASSWORD=SENTINEL",
    )
    preset = ("--config-dir", str(mine.parents[1]), "experiment=leaky", "action=export")
    env = {"MY_TOKEN": f"{sentinel}3"}
    done = [
        run_cli("model=tiny", *typed, "action=export", env=env),
        run_cli(*preset, env=env),
        run_cli("--multirun", *typed, "steps=4,5", "action=export", env=env),
        run_cli("model=tiny", *typed, "action=explain", env=env),
    ]
    assert [one.code for one in done] == [0, 0, 0, 0], [one.err for one in done]
    assert "HF_TOKEN" in done[0].err
    refused = run_cli(f"hf_acess_token={sentinel}", "steps=${oc.env:MY_TOKEN}", env=env)
    assert refused.code == 2
    mine.unlink()
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 20
    assert not [text for text in written if b"SENTINEL" in text]
    assert not [path for path in tmp_path.rglob("*") if "SENTINEL" in path.name]
    assert not [one for one in [*done, refused] if "SENTINEL" in one.out + one.err]


def test_a_secret_that_equals_an_ordinary_word_changes_nothing(run_cli: RunCli, tmp_path: Path) -> None:
    env = {"API_KEY": "synthetic", "ISSUE_KEY": "override_model_config", "DATA_KEY": str(tmp_path)}
    keys = _export(run_cli, tmp_path / "run", "model=tiny", env=env)
    assert keys["dataset_type"] == "synthetic"
    assert keys["override_model_config"] is True
    assert keys["metrics_file"] == str(tmp_path / "run" / "metrics.jsonl")


def test_problems_of_all_kinds_are_told_together(run_cli: RunCli) -> None:
    wrong = (
        "lr=3",
        "quantization=bad",
        "remat_policy=fulll",
        "platform.env.M_STEPS=3",
        "run.grace_s=-1",
        "action=export",
    )
    done = run_cli(*wrong)
    assert done.code == 2
    assert done.err.startswith("Nothing was started: 5 problems.")


def test_interpolations_that_fail_and_odd_folders_are_explained(run_cli: RunCli, tmp_path: Path) -> None:
    for typed in ("prompt=${nope}", "run.dir=~nouser/x", "run.dir=gs://b/x", f"run.dir={'x' * 300}", "action=${nope}"):
        done = run_cli(typed, "model=tiny")
        assert done.code == 2, typed
        assert "Nothing was started" in done.err, typed
        assert "Traceback" not in done.err, typed


def test_an_interpolation_that_fails_in_every_point_of_a_sweep_is_explained(run_cli: RunCli) -> None:
    done = run_cli("--multirun", "model=tiny", "steps=1,2", "run.trainer=[python,'x ${nope}.py']")
    assert done.code == 2
    assert "The settings under run cannot be read: Interpolation key 'nope' not found" in done.err
    assert "Traceback" not in done.err


def test_text_that_looks_like_an_interpolation_stays_text(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("model=tiny", r"prompt=\${steps}", "action=export", f"run.dir={tmp_path / 'run'}")
    assert done.code == 0, done.err
    assert r"\${steps}" in (tmp_path / "run" / "maxtext.yml").read_text(encoding="utf-8")
    again = run_cli("--config-dir", str(tmp_path / "run"), "--config-name", "replay", "action=explain")
    assert yaml.safe_load(again.out)["prompt"] == "${steps}"


def test_options_may_stand_between_overrides(run_cli: RunCli) -> None:
    done = run_cli("model=tiny", "--cfg", "job", "steps=5")
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["steps"] == 5


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model/broken.yaml", b"a: [1\n", "cannot be read"),
        ("model/latin.yaml", b"a: \xe9\n", "not UTF-8"),
        ("model/list.yaml", b"- steps\n", "no mapping"),
        ("config.yaml", b"steps: 3\n", "primary config"),
        ("platform/octal.yaml", b"platform: {env: {D: 010}}\n", "platform.env.D is 8"),
    ],
)
def test_a_preset_file_that_cannot_be_read_is_named(
    run_cli: RunCli, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    file = tmp_path / "mine" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    done = run_cli("--config-dir", str(tmp_path / "mine"), "action=explain")
    assert done.code == 2
    assert str(file) in done.err
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m primus_hydra action=explain explain.defaults=true | head -1"
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_ctrl_c_before_anything_started_is_told_in_one_line(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "primus_hydra", "experiment=llama3_8B", "platform=mi300x", "action=check"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()  # the summary: everything is composed, MaxText is about to be asked
        started.send_signal(signal.SIGINT)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert err.endswith("Interrupted.\n")
    assert "Traceback" not in err


def test_a_folder_without_permission_is_told(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run_cli("model=tiny", "action=export", f"run.dir={tmp_path}/file/run")
    assert done.code == 2
    assert "Traceback" not in done.err


def test_an_unknown_xla_flag_is_found_before_anything_starts(run_cli: RunCli) -> None:
    done = run_cli("model=tiny", "action=export", "platform.xla_flags.xla_gpu_autotune_levell=4")
    assert done.code == 2
    assert "xla_gpu_autotune_level" in done.err


def test_the_parent_imports_neither_jax_nor_maxtext(run_cli: RunCli, tmp_path: Path) -> None:
    watcher = tmp_path / "sitecustomize.py"
    watcher.write_text(
        "import atexit, sys\n"
        "atexit.register(lambda: print('imported:', sorted({'jax', 'maxtext'} & set(sys.modules)), file=sys.stderr))\n",
        encoding="utf-8",
    )
    done = run_cli("model=tiny", "action=export", env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1]}"})
    assert done.code == 0, done.err
    assert "imported: []" in done.err


def test_a_run_is_composed_again_byte_for_byte_after_its_presets_are_gone(run_cli: RunCli, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine" / "model" / "mine.yaml", tmp_path / "run"
    mine.parent.mkdir(parents=True)
    mine.write_text("# @package _global_\ndefaults: [tiny, _self_]\nbase_emb_dim: 64\n", encoding="utf-8")
    typed = ("model=mine", "run_name=1e3", "learning_rate=1e-4", "platform.env.X=007", "stderr_sink_level=ERROR")
    _export(run_cli, folder, "--config-dir", str(tmp_path / "mine"), *typed)
    before = {name: (folder / name).read_bytes() for name in ("maxtext.yml", "command.json", "replay.yaml")}
    mine.unlink()
    _export(run_cli, folder, "--config-dir", str(folder), "--config-name", "replay")
    assert {name: (folder / name).read_bytes() for name in before} == before
    elsewhere = _export(run_cli, tmp_path / "again", "--config-dir", str(folder), "--config-name", "replay")
    assert elsewhere["base_output_directory"] == str(tmp_path / "again" / "output")


@pytest.mark.parametrize(
    "text", ["platform.env.WANDB_API_KEY=SENTINELa,SENTINELb", "hf_access_token=SENTINELa,SENTINELb"]
)
def test_a_credential_with_several_values_is_refused_and_not_repeated(
    run_cli: RunCli, tmp_path: Path, text: str
) -> None:
    done = run_cli("--multirun", "model=tiny", "platform=cpu", text, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "is a credential" in done.err
    assert "SENTINEL" not in done.out + done.err
    assert not (tmp_path / "s").exists()


def test_a_credential_in_a_sweep_file_is_refused_and_not_repeated(run_cli: RunCli, tmp_path: Path) -> None:
    preset = tmp_path / "presets" / "sweep" / "mine.yaml"
    preset.parent.mkdir(parents=True)
    points = "[{platform.env.WANDB_API_KEY: SENTINELa}, {hf_access_token: SENTINELb}]"
    preset.write_text(f"# @package _global_\nsweep:\n  points: {points}\n", encoding="utf-8")
    command = ("--multirun", "--config-dir", str(preset.parents[1]), "sweep=mine", "model=tiny", "platform=cpu")
    done = run_cli(*command, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "WANDB_API_KEY is a credential" in done.err
    assert "hf_access_token is a credential" in done.err
    assert "SENTINEL" not in done.out + done.err
    assert not (tmp_path / "s").exists()


def test_a_sweep_does_not_write_into_the_folder_of_a_run(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    done = run_cli("--multirun", "model=tiny", "platform=cpu", "steps=5,6", f"sweep.dir={tmp_path}")
    assert done.code == 2
    assert "is the folder of a run" in done.err
