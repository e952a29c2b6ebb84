"""The condition language of the rule files."""

from typing import Any

import pytest

from primus_hydra.rules.conditions import holds, list_choices, list_subjects
from primus_hydra.rules.context import MISSING

_VALUES: dict[str, Any] = {"steps": 10, "packing": True, "attention": "te_x", "none": None, "jax": "0.12.0.1"}


def look_up(subject: str) -> Any:
    return _VALUES.get(subject, MISSING)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"steps": 10}, True),
        ({"steps": 11}, False),
        ({"steps": 10, "packing": False}, False),
        ({"packing": 1}, False),
        ({"steps": {"in": [1, 10]}}, True),
        ({"none": {"in": ["", None]}}, True),
        ({"steps": {"not_in": [10]}}, False),
        ({"absent": {"not_in": [10]}}, False),
        ({"absent": {"missing": True}}, True),
        ({"steps": {"missing": True}}, False),
        ({"steps": {"greater": 9, "less": 11}}, True),
        ({"steps": {"at_least": 10, "at_most": 10}}, True),
        ({"packing": {"greater": 0}}, False),
        ({"attention": {"greater": 0}}, False),
        ({"attention": {"matches": "^te_"}}, True),
        ({"steps": {"matches": "1"}}, False),
        ({"jax": {"version": ">=0.10"}}, True),
        ({"attention": {"version": ">=0.10"}}, False),
        ({"any": [{"steps": 1}, {"packing": True}]}, True),
        ({"all": [{"steps": 1}, {"packing": True}]}, False),
        ({"not": {"steps": 1}}, True),
    ],
)
def test_a_condition_holds_as_written(condition: dict[str, Any], expected: bool) -> None:
    assert holds(condition, look_up) is expected


def test_an_unknown_test_is_an_error_of_the_rule_file() -> None:
    with pytest.raises(KeyError):
        holds({"steps": {"above": 3}}, look_up)


def test_subjects_are_listed_once_in_the_order_written() -> None:
    assert list_subjects({"b": 1, "any": [{"a": 1}, {"not": {"b": 2, "c": 3}}]}) == ("b", "a", "c")


def test_the_choices_of_a_rule_against_unknown_values_are_found() -> None:
    assert list_choices({"steps": 1, "attention": {"not_in": ["a", "b"]}}) == ("attention", ("a", "b"))
    assert list_choices({"steps": 1}) is None
