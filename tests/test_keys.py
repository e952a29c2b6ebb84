"""primus_hydra.maxtext.keys: MaxText's keys, read without importing MaxText."""

import sys

import pytest

from primus_hydra.maxtext.keys import installed_version, load_keys


def test_all_keys_of_the_installed_version_are_read() -> None:
    assert installed_version() == "0.2.5"
    assert len(load_keys()) == 865
    assert "maxtext" not in sys.modules
    assert "jax" not in sys.modules


@pytest.mark.parametrize(
    ("name", "kinds", "nullable", "default"),
    [
        ("steps", {"int"}, False, 150001),
        ("run_name", {"str"}, False, ""),
        ("remat_policy", {"str"}, True, None),
        ("per_device_batch_size", {"int", "float"}, False, 12),
        ("mlp_activations", {"list"}, False, ["silu", "linear"]),
        ("weight_block_size", {"int", "list"}, True, None),
        ("dpo", {"dict"}, False, None),
        ("logical_axis_rules", set(), False, None),
        ("xprof_tpu_power_trace_level", {"int"}, False, 0),
    ],
)
def test_the_declared_type_is_read(name: str, kinds: set[str], nullable: bool, default: object) -> None:
    key = load_keys()[name]
    assert key.kinds == kinds
    assert key.nullable is nullable
    if default is not None:
        assert key.default == default


def test_enums_and_literals_give_the_choices() -> None:
    keys = load_keys()
    assert {"", "int8", "nanoo_fp8", "te_mxfp8"} <= set(keys["quantization"].choices)
    assert keys["hardware"].choices == ("tpu", "gpu", "gpu_multiprocess", "cpu")
    assert "llama3-8b" in keys["model_name"].choices
    assert "mixtral" in keys["decoder_block"].choices


def test_limits_are_read_from_fields_and_constrained_types() -> None:
    keys = load_keys()
    assert keys["dropout_rate"].bounds == (("ge", 0.0), ("le", 1.0))
    assert ("ge", 0.0) in keys["local_checkpoint_period"].bounds
    assert ("gt", 0.0) in keys["multi_tier_checkpointing_backup_interval_minutes"].bounds
