"""primus_hydra.identity: what makes two runs the same."""

import math
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.identity import IDENTITY_FREE_KEYS, NOT_SET, fingerprint, identify, list_differences
from primus_hydra.maxtext.keys import load_keys
from tests.conftest import RunCli

CONFIG = {"steps": 10, "remat_policy": "full", "run_name": "a", "base_output_directory": "/x"}


def print_of(keys: dict[str, Any] = CONFIG, env: dict[str, str] | None = None, trainer: list[str] | None = None) -> str:
    return fingerprint(identify(keys, env or {}, trainer))


def test_the_fingerprint_ignores_places_and_names_and_order() -> None:
    moved = dict(reversed(list((CONFIG | {"run_name": "b", "metrics_file": "/y", "log_period": 1}).items())))
    assert print_of(moved) == print_of()
    assert len(print_of()) == 64


@pytest.mark.parametrize("change", [{"steps": 11}, {"steps": "10"}, {"remat_policy": None}, {"packing": True}])
def test_the_fingerprint_sees_every_other_key(change: dict[str, Any]) -> None:
    assert print_of(CONFIG | change) != print_of()
    differing = list_differences(identify(CONFIG, {}, None), identify(CONFIG | change, {}, None))
    assert differing.keys() == change.keys()


@pytest.mark.parametrize(
    ("mine", "theirs", "differing"),
    [
        ({"NVTE_FUSED_ATTN": "1"}, {"NVTE_FUSED_ATTN": "0"}, {"platform.env.NVTE_FUSED_ATTN": ("1", "0")}),
        ({}, {"NVTE_FUSED_ATTN": "0"}, {"platform.env.NVTE_FUSED_ATTN": (NOT_SET, "0")}),
        (
            {"XLA_FLAGS": "--xla_a=4 --xla_b"},
            {"XLA_FLAGS": "--xla_b --xla_a=0"},
            {"platform.xla_flags.xla_a": ("4", "0")},
        ),
        ({"XLA_FLAGS": "--xla_a"}, {}, {"platform.xla_flags.xla_a": (None, NOT_SET)}),
    ],
)
def test_variables_and_flags_that_we_set_count_one_by_one(
    mine: dict[str, str], theirs: dict[str, str], differing: dict[str, Any]
) -> None:
    assert print_of(env=mine) != print_of(env=theirs)
    assert list_differences(identify(CONFIG, mine, None), identify(CONFIG, theirs, None)) == differing


def test_the_order_of_flags_does_not_count() -> None:
    assert print_of(env={"XLA_FLAGS": "--xla_a=4 --xla_b=1"}) == print_of(env={"XLA_FLAGS": "--xla_b=1 --xla_a=4"})


@pytest.mark.parametrize(
    "env",
    [
        {"MAXTEXT_ASSETS_ROOT": "/assets"},
        {"JAX_COMPILATION_CACHE_DIR": "/cache"},
        {"TF_CPP_MIN_LOG_LEVEL": "0"},
        {"XLA_FLAGS": "--xla_dump_to=/dump --xla_dump_hlo_as_text"},
    ],
)
def test_where_something_is_kept_or_logged_does_not_count(env: dict[str, str]) -> None:
    assert print_of(env=env) == print_of()


@pytest.mark.parametrize("flag", ["xla_gpu_load_autotune_results_from", "xla_gpu_dump_to"])
def test_a_flag_that_only_looks_like_a_place_counts(flag: str) -> None:
    assert print_of(env={"XLA_FLAGS": f"--{flag}=/x"}) != print_of()


def test_a_secret_is_neither_hashed_nor_kept() -> None:
    identity = identify(CONFIG | {"hf_access_token": "hf_x"}, {"WANDB_API_KEY": "abc", "HF_TOKEN": "hf_y"}, None)
    assert identity == identify(CONFIG, {}, None)


def test_the_trainer_counts() -> None:
    assert len({print_of(), print_of(trainer=["a"]), print_of(trainer=["a", "b"])}) == 3


@pytest.mark.parametrize("value", [math.nan, {1, 2}, object()])
def test_what_cannot_be_spelt_the_same_way_twice_has_no_fingerprint(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        print_of({"steps": value})


def test_differences_name_both_values() -> None:
    assert list_differences({"steps": 10, "remat_policy": "full"}, {"steps": 20, "packing": False}) == {
        "packing": (NOT_SET, False),
        "remat_policy": ("full", NOT_SET),
        "steps": (10, 20),
    }


def test_every_identity_free_key_is_a_key_of_maxtext() -> None:
    assert IDENTITY_FREE_KEYS - load_keys().keys() == set()


def test_a_run_folder_of_another_environment_is_refused_with_names_and_values(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("model=tiny", "platform=cpu", "steps=5", f"run.dir={tmp_path / 'run'}", "action=export")
    first = run_cli(*common, "platform.env.NVTE_FUSED_ATTN=1", "platform.xla_flags.xla_cpu_enable_fast_math=true")
    assert first.code == 0, first.err
    again = run_cli(*common, "platform.env.NVTE_FUSED_ATTN=0", "platform.xla_flags.xla_cpu_enable_fast_math=false")
    assert again.code == 2
    assert "platform.env.NVTE_FUSED_ATTN: '1' there, '0' now" in " ".join(again.err.split())
    assert "platform.xla_flags.xla_cpu_enable_fast_math: 'true' there, 'false' now" in " ".join(again.err.split())
    longer = run_cli(
        *common, "platform.env.NVTE_FUSED_ATTN=1", "platform.xla_flags.xla_cpu_enable_fast_math=true", "steps=9"
    )
    assert longer.code == 0, longer.err


def test_a_variable_that_we_do_not_set_does_not_count(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("model=tiny", "platform=cpu", "steps=5", f"run.dir={tmp_path / 'run'}", "action=export")
    for value in ("1", "2"):
        done = run_cli(
            *common, env={"SOMETHING_OF_MY_SHELL": value, "MY_API_KEY": value, "ROCR_VISIBLE_DEVICES": value}
        )
        assert done.code == 0, done.err
