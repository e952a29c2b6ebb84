"""Reading and writing XLA_FLAGS by XLA's own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primus_hydra.errors import ConfigError
from primus_hydra.xla_flags import check_flag_names, format_flags, parse_flags

NAMES = st.from_regex(r"xla_[a-z0-9_]{1,12}", fullmatch=True)
VALUES = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", {}),
        ("  \t", {}),
        ("--xla_a=4", {"xla_a": "4"}),
        (" --xla_a=4\n--xla_b=x ", {"xla_a": "4", "xla_b": "x"}),
        ("--xla_a=0 --xla_b=1 --xla_a=4", {"xla_a": "4", "xla_b": "1"}),
        ("--xla_a=", {"xla_a": ""}),
        ("--xla_a=''", {"xla_a": "''"}),
        ('--xla_a="" --xla_b=1', {"xla_a": '""', "xla_b": "1"}),
        ("--xla_a", {"xla_a": None}),
        ('--xla_a="one two" --xla_b', {"xla_a": '"one two"', "xla_b": None}),
        (r'--xla_a="say \"hi\"" --xla_b=1', {"xla_a": r'"say \"hi\""', "xla_b": "1"}),
        ("--xla_a=k=v,'x'", {"xla_a": "k=v,'x'"}),
    ],
)
def test_parse_flags_reads_what_xla_reads(text: str, flags: dict[str, str | None]) -> None:
    assert parse_flags(text) == flags


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("xla_gpu_autotune_level=4", "'xla_gpu_autotune_level=4' in XLA_FLAGS is not a flag: XLA would take the whole"),
        ("--xla_a=1 stray --xla_b=2", "'stray' in XLA_FLAGS is not a flag: XLA would silently ignore"),
        ("--xla_a = 1", "'=' in XLA_FLAGS"),
        ("--xla_a='1'2", "--xla_a='1'2"),
        ("--xla_a='1", "--xla_a='1"),
        ("-xla_a=1", "'-xla_a=1'"),
    ],
)
def test_parse_flags_refuses_what_xla_would_misread(text: str, word: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_flags(text, origin="XLA_FLAGS in the environment")
    assert word in str(refusal.value)
    assert "Set by: XLA_FLAGS in the environment" in str(refusal.value)


def test_format_flags_keeps_empty_and_quoted_values_as_they_were() -> None:
    text = "--xla_a='' --xla_b= --xla_c=\"x y\" --xla_d --xla_e=1"
    assert format_flags(parse_flags(text)) == text


@given(flags=st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_format_flags_writes_reads_back_to_the_same_text(flags: dict[str, str | None]) -> None:
    text = format_flags(flags)
    assert list(parse_flags(text)) == list(flags)
    assert format_flags(parse_flags(text)) == text


def test_check_flag_names_lists_every_name_that_cannot_be_one() -> None:
    problems = check_flag_names(["xla_a", "--xla_b", "xla c", ""])
    assert [problem.what.split("' ")[0] for problem in problems] == ["'--xla_b", "'xla c", "'"]
