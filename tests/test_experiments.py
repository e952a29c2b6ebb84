"""The shipped experiments: published values, composed on their platform, accepted by MaxText."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra import compose
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from primus_hydra.maxtext.keys import load_keys, package_dir
from primus_hydra.paths import conf_dir, list_choices
from tests.conftest import RunCli

pytestmark = pytest.mark.usefixtures("hydra_app")

HERE = Path(__file__).parent
RECIPES: dict[str, dict[str, Any]] = json.loads((HERE / "golden" / "recipes.json").read_text())
EXPERIMENTS = list_choices([conf_dir()], "experiment")
NOT_IN_THIS_MAXTEXT = "pure_nnx_decoder"
ONLY_ON = {"llama3.1_405B": "mi355x", "llama3.1_405B_fp8": "mi355x", "grok1_fp8": "mi300x"}

NEEDS = {
    "scan_layers=false": {
        *("gemma4-e2b", "gemma4-e4b", "qwen3-omni-30b-a3b", "qwen3-vl-2b", "qwen3-vl-4b", "qwen3-vl-30b-a3b"),
        *("weaver-max", "weaver-mini"),
    },
    "attention=dot_product": {"deepseek-custom", "deepseek3.2-671b", "deepseek4-284b", "deepseek4-tiny"},
}
"""What the rules tell to write -> the models that need it."""


def load_in_child(script: str, folder: Path, configurations: Mapping[str, Any]) -> dict[str, str | None]:
    """Name -> None where MaxText's own loader accepts the configuration, else what it says; on eight devices."""
    source, target = folder / "configurations.json", folder / "outcomes.json"
    source.write_text(json.dumps(configurations))
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "MAXTEXT_ASSETS_ROOT": str(package_dir() / "assets")}
    environment |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, str(HERE / "children" / script), str(source), str(target)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    outcomes: dict[str, str | None] = json.loads(target.read_text())
    return outcomes


def experiment_of(recipe: dict[str, Any]) -> str:
    return str(recipe["model"]) + ("" if recipe["precision"] == "bf16" else "_fp8")


@cache
def compose_recipe(name: str) -> DictConfig:
    recipe = RECIPES[name]
    return compose("config", overrides=[f"experiment={experiment_of(recipe)}", f"platform={recipe['platform']}"])


def flat_keys(config: DictConfig) -> dict[str, Any]:
    """MaxText's keys of a composition."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return {str(name): value for name, value in container.items() if name in load_keys()}


@pytest.mark.parametrize("name", RECIPES)
def test_every_published_recipe_composes_to_its_values_on_its_platform(name: str) -> None:
    recipe = RECIPES[name]
    config = compose_recipe(name)
    published = {key: value for key, value in recipe["overrides"].items() if key != NOT_IN_THIS_MAXTEXT}
    assert {key: config.get(key, "absent") for key in published} == published
    environment = recipe.get("env", {})
    assert {variable: config.platform.env[variable] for variable in environment} == environment
    unquantized = {"bf16": ""}
    assert config.quantization == unquantized.get(recipe["precision"], recipe["precision"])


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_changes_no_mesh_axis_that_was_not_published(name: str) -> None:
    recipe = RECIPES[name]
    keys = flat_keys(compose_recipe(name))
    axes = {key: value for key, value in keys.items() if re.match(r"(ici|dcn)_", key)}
    assert {
        key: value for key, value in axes.items() if value != recipe["overrides"].get(key, load_keys()[key].default)
    } == {}


def test_the_only_published_key_left_out_is_one_that_this_maxtext_does_not_have() -> None:
    assert NOT_IN_THIS_MAXTEXT not in load_keys()
    carriers = {name for name, recipe in RECIPES.items() if NOT_IN_THIS_MAXTEXT in recipe["overrides"]}
    moe = ("deepseek_v2_16B", "gemma4_26B", "mixtral_8x7B", "qwen3_30B_A3B")
    assert carriers == {
        f"{chip}-{fp8}" for model in moe for chip, fp8 in ((f"mi300x/{model}", "nanoo_fp8"), (f"mi355x/{model}", "fp8"))
    }
    assert all(RECIPES[name]["overrides"][NOT_IN_THIS_MAXTEXT] is False for name in carriers)


def test_every_recipe_has_an_experiment_and_no_experiment_is_unaccounted_for() -> None:
    used = {experiment_of(recipe) for recipe in RECIPES.values()}
    assert set(EXPERIMENTS) - used == {"demo", "recipe_base"}
    assert used <= set(EXPERIMENTS)


@pytest.mark.parametrize("platform", ["mi300x", "mi325x", "mi355x"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes_on_every_amd_platform_it_has_values_for(experiment: str, platform: str) -> None:
    config = compose("config", overrides=[f"experiment={experiment}", f"platform={platform}"])
    published = ONLY_ON.get(experiment)
    if published is None or (published == "mi300x" and platform == "mi325x") or published == platform:
        assert set(flat_keys(config)) > {"steps", "model_name"}
    else:
        with pytest.raises(InterpolationResolutionError, match=f"only for {published}; add platform={published}"):
            flat_keys(config)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_first_comment_line_of_an_experiment_is_the_command_that_runs_it(experiment: str) -> None:
    header, command = (conf_dir() / "experiment" / f"{experiment}.yaml").read_text().splitlines()[:2]
    assert header == "# @package _global_"
    words = shlex.split(command.removeprefix("# "))
    assert words[:3] == ["python", "-m", "primus_hydra"]
    assert f"experiment={experiment}" in words
    names = {"experiment", "platform", "platform.nodes", "model", *load_keys()}
    assert all(word.split("=")[0] in names for word in words[3:])
    platform = (
        [] if any(word.startswith("platform=") for word in words) else [f"platform={ONLY_ON.get(experiment, 'mi300x')}"]
    )
    assert flat_keys(compose("config", overrides=[*words[3:], *platform]))


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_command_of_an_experiment_is_refused_by_no_rule(experiment: str, run_cli: RunCli) -> None:
    command = (conf_dir() / "experiment" / f"{experiment}.yaml").read_text().splitlines()[1]
    words = shlex.split(command.removeprefix("# "))[3:]
    platform = "cpu" if experiment == "demo" else ONLY_ON.get(experiment, "mi300x")
    finished = run_cli(*words, f"platform={platform}", "action=export")
    assert finished.code == 0, finished.err
    assert "cannot fit" not in finished.err


def test_a_choice_on_the_command_line_beats_the_experiment() -> None:
    config = compose(
        "config", overrides=["experiment=llama3_8B_fp8", "platform=mi355x", "precision=bf16", "data=c4", "steps=7"]
    )
    assert (config.quantization, config.dataset_type, config.steps) == ("", "hf", 7)


@pytest.mark.parametrize(
    ("platform", "spelling"), [("mi300x", "nanoo_fp8"), ("mi325x", "nanoo_fp8"), ("mi355x", "fp8")]
)
def test_precision_fp8_means_the_format_of_the_chip(platform: str, spelling: str) -> None:
    assert (
        compose("config", overrides=["model=llama3_8B", "precision=fp8", f"platform={platform}"]).quantization
        == spelling
    )


def test_the_demo_needs_no_network_no_accelerator_and_no_time() -> None:
    keys = flat_keys(compose("config", overrides=["experiment=demo"]))
    assert (keys["hardware"], keys["hf_path"], keys["packing"], keys["profiler"]) == ("cpu", "text", True, "")
    assert Path(keys["hf_train_files"]).is_file()
    assert Path(keys["tokenizer_path"], "tokenizer.json").is_file()
    assert 40 <= keys["steps"] <= 80


@pytest.mark.slow
def test_maxtext_itself_accepts_every_recipe(tmp_path: Path) -> None:
    configurations = {}
    for name in RECIPES:
        configurations[name] = {
            **flat_keys(compose_recipe(name)),
            "skip_jax_distributed_system": True,
            "run_name": "loaded",
            "log_config": False,
        }
    configurations["demo"] = flat_keys(compose("config", overrides=["experiment=demo"]))
    outcomes = load_in_child("load_configurations.py", tmp_path, configurations)
    assert {name: outcome for name, outcome in outcomes.items() if outcome is not None} == {}
    assert len(outcomes) == 48


@pytest.mark.slow
def test_every_model_of_maxtext_exports_and_loads_as_the_rules_say(tmp_path: Path, run_cli: RunCli) -> None:
    """All names that MaxText accepts and has a file for, through the real program, with the fixes that rules name."""
    files = {path.stem for path in (package_dir() / "configs" / "models").glob("*.yml")}
    names = files & set(load_keys()["model_name"].choices)
    groups = {fix: names & models for fix, models in NEEDS.items()}
    groups["attention=cudnn_flash_te"] = names - set().union(*groups.values())
    for number, (fix, models) in enumerate(groups.items()):
        arguments = ["model=model_base", f"model_name={','.join(sorted(models))}", "data=synthetic", "platform=mi300x"]
        sweep = [*arguments, fix, "action=export", f"sweep.dir={tmp_path / str(number)}", "--multirun"]
        finished = run_cli(*sweep, timeout_s=300)
        assert finished.code == 0, finished.err
    exports = {}
    for folder in tmp_path.glob("*/*/"):
        record = json.loads((folder / "run.json").read_text())
        name = record["composed"]["model_name"]["value"]
        exports[name] = json.loads((folder / "command.json").read_text())["maxtext_args"]
    assert set(exports) == names
    outcomes = load_in_child("load_exports.py", tmp_path, exports)
    refused = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
    assert set(refused) == {"deepseek-custom"}
    assert "Engram requires both 'hf_access_token' and 'tokenizer_path'" in str(refused)
