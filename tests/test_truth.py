"""primus_hydra.maxtext.truth: what was composed against what MaxText resolved."""

import enum
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.maxtext.truth import compare, plain, same

CHILDREN = Path(__file__).parent / "children"


class Colour(enum.StrEnum):
    RED = "red"


def _compare(composed: dict[str, Any], resolved: dict[str, Any], **files: dict[str, Any]) -> list[str]:
    with_origins = {key: (value, "command line") for key, value in composed.items()}
    return [str(found) for found in compare(with_origins, resolved, files.get("model", {}), files.get("base", {}))]


def test_a_difference_names_both_values_and_both_origins() -> None:
    found = _compare({"base_emb_dim": 64}, {"base_emb_dim": 4096}, model={"base_emb_dim": 4096})
    assert found == ["base_emb_dim: composed 64 (command line), but MaxText resolved 4096 (MaxText's model file)"]


def test_a_missing_key_is_a_difference() -> None:
    assert len(_compare({"steps": 5}, {})) == 1


@pytest.mark.parametrize(
    ("composed", "resolved"), [("red", Colour.RED), ([1, [2]], (1, (2,))), (1.0, 1), ("none", None), ("", None)]
)
def test_spelling_differences_are_none(composed: Any, resolved: Any) -> None:
    assert same(composed, plain(resolved))


@pytest.mark.parametrize(
    ("composed", "resolved"), [(True, 0), ("full", "minimal"), (64, 4096), ([1], [1, 2]), ("fp8", "")]
)
def test_other_values_differ(composed: Any, resolved: Any) -> None:
    assert not same(composed, resolved)


def test_a_value_that_leaves_the_choice_to_maxtext_accepts_what_maxtext_derives() -> None:
    assert _compare({"steps": -1, "mu_dtype": ""}, {"steps": 100, "mu_dtype": "bfloat16"}) == []


def test_an_empty_value_that_a_file_overruled_is_a_difference() -> None:
    assert len(_compare({"quantization": ""}, {"quantization": "fp8"}, model={"quantization": "fp8"})) == 1


def test_of_a_mapping_only_the_composed_part_has_to_agree() -> None:
    assert _compare({"dpo": {"dpo_beta": 0.2}}, {"dpo": {"dpo_beta": 0.2, "other": 1}}) == []
    assert len(_compare({"dpo": {"dpo_beta": 0.2}}, {"dpo": {"dpo_beta": 0.1}})) == 1


def test_a_lost_sharding_rule_is_a_difference() -> None:
    base = {"logical_axis_rules": [["mlp", ["a"]], ["embed", ["b"]]]}
    composed = {"logical_axis_rules": [["mlp", ["x"]]]}
    assert _compare(composed, {"logical_axis_rules": [["embed", ["b"]], ["mlp", ["x"]]]}, base=base) == []
    assert len(_compare(composed, composed, base=base)) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_key_of_every_maxtext_model_file_can_be_overridden(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(CHILDREN / "override_every_model_key.py"), str(tmp_path)],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 83
    assert {name: differences for name, differences in found.items() if differences} == {}
