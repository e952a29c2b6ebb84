"""What is written is what OmegaConf reads back."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from primus_hydra.omegaconf_yaml import format_yaml

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    [
        "",
        "1e3",
        "007",
        "2024_01_01",
        "0x1f",
        "1:30",
        "yes",
        "null",
        "~",
        "true",
        "- a",
        "a: b",
        "# c",
        "x" * 200,
        "1_000",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def _has_dollar(value: Any) -> bool:
    return "$" in repr(value)  # an interpolation is for OmegaConf to read


@given(
    st.dictionaries(st.sampled_from(["steps", "attention", "mlp_activations"]), VALUES).filter(
        lambda v: not _has_dollar(v)
    )
)
def test_every_value_comes_back_with_its_type(values: dict[str, Any]) -> None:
    loaded = OmegaConf.to_container(OmegaConf.create(format_yaml(values)))
    assert repr(loaded) == repr(values)


def test_an_interpolation_stays_one() -> None:
    assert OmegaConf.create(format_yaml({"a": 1, "b": "${a}"})).b == 1


def test_a_value_that_occurs_twice_is_written_out_twice() -> None:
    shared = [1, 2]
    assert format_yaml({"a": shared, "b": shared}) == "a:\n- 1\n- 2\nb:\n- 1\n- 2\n"
