"""Values that are written as overrides are read back as they are."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primus_hydra.grammar import parse_override, split_top_level, try_parse, typed_name, write_value

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12).filter(
    lambda text: "${" not in text
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), inner),
    max_leaves=6,
)


@given(value=VALUES)
def test_hydra_reads_a_written_value_back_with_its_type(value: Any) -> None:
    override = parse_override(f"++key={write_value(value)}")
    assert not override.is_sweep_override()
    assert override.value() == value
    assert type(override.value()) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("full", "full"),
        ("", "''"),
        ("null", "'null'"),
        ("1e3", "'1e3'"),
        ("a,b", "'a,b'"),
        ("choice(1,2)", "'choice(1,2)'"),
        ("${platform.fp8}", "${platform.fp8}"),
        (None, "null"),
        (True, "true"),
        (1e-05, "1e-05"),
        (["a", 1, None], "[a,1,null]"),
        ({"dpo_beta": 0.1}, "{dpo_beta:0.1}"),
    ],
)
def test_a_value_is_written_as_a_person_would_type_it(value: Any, text: str) -> None:
    assert write_value(value) == text


@pytest.mark.parametrize(
    ("text", "name"), [("++steps=3", "steps"), ("~steps", "steps"), ("model@x=y", "model"), ("steps", "steps")]
)
def test_typed_name_drops_the_decoration(text: str, name: str) -> None:
    assert typed_name(text) == name


def test_commas_in_quotes_and_brackets_do_not_split() -> None:
    assert split_top_level("a,[b,c],'d,e',f(g,h)") == ["a", "[b,c]", "'d,e'", "f(g,h)"]


def test_what_is_no_override_is_none() -> None:
    assert try_parse("k=[") is None
