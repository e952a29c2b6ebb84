"""The small language of `when:` in the rule files.

    quantization: fp8                      the value equals
    remat_policy: {in: [none, null]}       one test ...
    steps: {at_least: 1, less: 10}         ... or several, which must all hold
    any: [{...}, {...}]                    at least one condition holds; `all` and `not` likewise

A mapping holds when all its entries hold. Subjects are MaxText keys or our own dotted facts
(`RuleContext.look_up`). A test on a value of another type does not hold; it never raises.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

from primus_hydra.rules.context import MISSING

Condition = Mapping[str, Any]
LookUp = Callable[[str], Any]


def holds(condition: Condition, look_up: LookUp) -> bool:
    """Whether a condition is true of the subjects that `look_up` knows."""
    return all(_entry_holds(subject, test, look_up) for subject, test in condition.items())


def list_subjects(condition: Condition) -> tuple[str, ...]:
    """Every subject that a condition looks at, in the order written, each once."""
    found: dict[str, None] = {}
    for subject, test in condition.items():
        parts = [test] if subject == "not" else test if subject in ("any", "all") else None
        names = [subject] if parts is None else [name for part in parts for name in list_subjects(part)]
        found.update(dict.fromkeys(names))
    return tuple(found)


def list_choices(condition: Condition) -> tuple[str, tuple[Any, ...]] | None:
    """(subject, allowed values) of the first `not_in` test: a rule against unknown values; None without one."""
    for subject, test in condition.items():
        if isinstance(test, Mapping) and "not_in" in test:
            return subject, tuple(test["not_in"])
    return None


def _entry_holds(subject: str, test: Any, look_up: LookUp) -> bool:
    match subject:
        case "any":
            return any(holds(part, look_up) for part in test)
        case "all":
            return all(holds(part, look_up) for part in test)
        case "not":
            return not holds(test, look_up)
    value = look_up(subject)
    if not isinstance(test, Mapping):
        return value is not MISSING and _equal(value, test)
    return all(TESTS[name](value, expected) for name, expected in test.items())


def _equal(value: Any, expected: Any) -> bool:
    """Equal and of one kind: true is not 1, as YAML and MaxText see it."""
    return isinstance(value, bool) == isinstance(expected, bool) and bool(value == expected)


def _is_one_of(value: Any, expected: list[Any]) -> bool:
    return any(_equal(value, choice) for choice in expected)


def _number(compare: Callable[[float, float], bool]) -> Callable[[Any, float], bool]:
    return lambda value, limit: isinstance(value, int | float) and not isinstance(value, bool) and compare(value, limit)


def _version_matches(value: Any, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(str(value), prereleases=True)
    except InvalidVersion:
        return False


TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "in": _is_one_of,
    "not_in": lambda value, expected: value is not MISSING and not _is_one_of(value, expected),
    "greater": _number(lambda value, limit: value > limit),
    "at_least": _number(lambda value, limit: value >= limit),
    "less": _number(lambda value, limit: value < limit),
    "at_most": _number(lambda value, limit: value <= limit),
    "matches": lambda value, pattern: isinstance(value, str) and re.search(pattern, value) is not None,
    "missing": lambda value, expected: (value is MISSING) == expected,
    "version": _version_matches,
}
"""Name of a test in a rule file -> the test itself: (value, what the file says) -> bool."""
