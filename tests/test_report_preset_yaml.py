"""YAML of presets: what is written is what OmegaConf loads."""

import yaml
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from primus_hydra.report.preset_yaml import to_preset_yaml

WORDS = [
    "1e3",
    "0x1f",
    "010",
    "yes",
    "null",
    "~",
    "2024-01-01",
    "1_000",
    ".inf",
    "a: b",
    "a #b",
    "- x",
    "",
    " ",
    "${x}",
    "[a]",
]
TEXTS = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: text != "???"
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS
VALUES = (
    SCALARS
    | st.lists(SCALARS | st.lists(TEXTS, max_size=3), max_size=4)
    | st.dictionaries(st.sampled_from("abc"), SCALARS)
)


@given(VALUES)
def test_every_value_comes_back_with_its_type(value: object) -> None:
    text = to_preset_yaml({"key": value})
    loaded = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
    assert repr(loaded) == repr({"key": value})


def test_environment_values_are_texts_for_every_reader() -> None:
    values = {word: word for word in ("1", "01", "1e3", "yes", "on", "null", "4")}
    assert yaml.safe_load(to_preset_yaml({"env": values}))["env"] == values


def test_a_preset_reads_like_one_that_a_person_wrote() -> None:
    values = {"defaults": ["_self_", {"override /model": "tiny"}], "path": "/a/b", "empty": "", "rate": 1e-05}
    assert to_preset_yaml(values) == (
        'defaults:\n  - _self_\n  - override /model: tiny\npath: /a/b\nempty: ""\nrate: 1.0e-05'
    )
