"""primus_hydra.maxtext.values: from what a person wrote to what MaxText declares."""

from pathlib import Path
from typing import Any

import pytest

from primus_hydra.maxtext.keys import load_keys
from primus_hydra.maxtext.model_files import configs_dir, load_yaml
from primus_hydra.maxtext.values import absolute_path, coerce, describe_allowed, is_path_key


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("steps", 2000, 2000),
        ("steps", "2000", 2000),
        ("data_shuffle_seed", "9007199254740993", 9007199254740993),
        ("stop_strings", ["a", "b"], ["a", "b"]),
        ("steps", 1e3, 1000),
        ("learning_rate", 1, 1.0),
        ("learning_rate", "3e-5", 3e-5),
        ("packing", "True", True),
        ("packing", 0, False),
        ("per_device_batch_size", 4, 4),
        ("per_device_batch_size", 0.5, 0.5),
        ("quantization", "", ""),
        ("quantization", None, None),
        ("remat_policy", "none", "none"),
        ("max_num_checkpoints_to_keep", "None", None),
        ("mlp_activations", ("silu", "linear"), ["silu", "linear"]),
        ("weight_block_size", [128, 64], [128, 64]),
        ("dpo", {"dpo_beta": 0.1}, {"dpo_beta": 0.1}),
        ("logical_axis_rules", [["mlp", ["fsdp"]]], [["mlp", ["fsdp"]]]),
    ],
)
def test_a_value_takes_the_type_that_maxtext_declares(name: str, value: Any, expected: Any) -> None:
    converted, problem = coerce(value, load_keys()[name], "somewhere")
    assert problem is None
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("steps", "many", "a whole number"),
        ("steps", 1.5, "a whole number"),
        ("steps", -2, "at least -1"),
        ("steps", True, "a whole number"),
        ("steps", None, "a whole number"),
        ("steps", 10**20, "a whole number"),
        ("max_target_length", 0, "at least 1"),
        ("learning_rate", float("inf"), "a number"),
        ("adam_b1", "nan", "a number"),
        ("mlp_activations", [1, 2], "a list"),
        ("logical_axis_rules", 3, "[[mlp,[fsdp]]]"),
        ("dpo", {"dpo_betta": 0.1}, "Did you mean dpo.dpo_beta"),
        ("logical_axis_rules", None, "[[mlp,[fsdp]]]"),
        ("logical_axis_rules", [["mlp"]], "[[mlp,[fsdp]]]"),
        ("packing", "yes", "true or false"),
        ("packing", 2, "true or false"),
        ("dropout_rate", 1.5, "at most 1"),
        ("run_name", 20240101, "put it in quotes"),
        ("quantization", "fp9", "Did you mean fp8"),
        ("hardware", "rocm", "'gpu_multiprocess'"),
        ("mlp_activations", "silu,linear", "a list such as"),
        ("base_output_directory", "???", "has to be filled in"),
        ("base_output_directory", "<changeme>", "has to be filled in"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(name: str, value: Any, words: str) -> None:
    unchanged, problem = coerce(value, load_keys()[name], "somewhere")
    assert unchanged == value
    assert problem is not None
    assert problem.origin == "somewhere"
    assert words in f"{problem.what} {problem.allowed} {problem.fix}"


def test_every_value_in_maxtexts_own_files_is_accepted() -> None:
    keys = load_keys()
    files = [configs_dir() / "base.yml", *(configs_dir() / "models").glob("*.yml")]
    problems = [
        (file.name, name, value)
        for file in files
        for name, value in load_yaml(file).items()
        # base.yml writes an empty text for this list and for two nullable numbers; MaxText mends them itself.
        if name in keys and value not in ("", None) and coerce(value, keys[name], "")[1] is not None
    ]
    assert problems == []


def test_a_long_list_of_choices_is_cut() -> None:
    assert "more" in describe_allowed(load_keys()["model_name"])
    assert len(describe_allowed(load_keys()["model_name"])) < 1000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("./output", "/work dir/output"),
        ("/abs/x", "/abs/x"),
        ("", ""),
        ("gs://b/x", "gs://b/x"),
        ("a*.txt;b.txt", "/work dir/a*.txt;/work dir/b.txt"),
    ],
)
def test_relative_paths_start_where_the_command_was_typed(value: str, expected: str) -> None:
    assert absolute_path(value, Path("/work dir")) == expected


def test_the_home_folder_is_expanded() -> None:
    assert absolute_path("~/x", Path("/elsewhere")) == str(Path.home() / "x")


def test_path_keys_are_known() -> None:
    keys = load_keys()
    names = {"base_output_directory", "metrics_file", "load_parameters_path", "dump_hlo_local_dir", "hf_train_files"}
    assert all(is_path_key(keys[name]) for name in names)
    assert not any(is_path_key(keys[name]) for name in ("hf_path", "hf_data_dir", "run_name"))
