"""primus_hydra.export: what MaxText is given, and how."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from primus_hydra.export import format_argument, maxtext_arguments
from primus_hydra.replay import to_omegaconf_yaml
from primus_hydra.runs import RunFolder

VALUES: list[Any] = [
    "plain",
    "",
    "1e3",
    "007",
    "true",
    "null",
    "none",
    "a b",
    "a=b",
    "it's",
    'say "hi"',
    "[not, a, list]",
    "{a: b}",
    "${steps}",
    "#comment",
    "é",
    3,
    0.5,
    1e-8,
    True,
    None,
    ["silu", "linear"],
    [["mlp", ["fsdp"]], ["embed", "data"]],
    {"a": 1, "b": "1e3"},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_argument_is_read_back_as_the_same_value(value: Any) -> None:
    loaded = OmegaConf.from_cli([f"key={format_argument(value)}"])
    assert OmegaConf.to_container(loaded, resolve=True) == {"key": value}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_exported_file_is_read_back_as_the_same_value(value: Any, tmp_path: Path) -> None:
    file = tmp_path / "maxtext.yml"
    file.write_text(to_omegaconf_yaml({"key": value}), encoding="utf-8")
    assert OmegaConf.to_container(OmegaConf.load(file), resolve=True) == {"key": value}


def test_only_keys_that_a_model_file_would_win_travel_as_arguments(tmp_path: Path) -> None:
    keys = {"model_name": "llama3-8b", "override_model_config": True, "steps": 5, "base_emb_dim": 64}
    folder = RunFolder(tmp_path)
    assert maxtext_arguments(keys, folder) == [
        str(folder.maxtext_yml),
        "override_model_config=true",
        "base_emb_dim=64",
    ]
    assert maxtext_arguments({"model_name": "default", "steps": 5}, folder) == [str(folder.maxtext_yml)]


def test_sharding_rules_always_travel_as_an_argument(tmp_path: Path) -> None:
    keys = {"model_name": "default", "override_model_config": True, "logical_axis_rules": [["mlp", ["fsdp"]]]}
    assert 'logical_axis_rules=[["mlp", ["fsdp"]]]' in maxtext_arguments(keys, RunFolder(tmp_path))
