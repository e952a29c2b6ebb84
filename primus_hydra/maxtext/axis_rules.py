"""Sharding rules: lists of [logical axis, mesh axes] that MaxText merges by axis name, not by position.

Rules in the exported file would replace base.yml's whole list, and rules given as an override make MaxText
drop those of its model file, so both are merged here and travel as one override (`configs/pyconfig.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

RULES = "logical_axis_rules"
REPLACE_ALL = "override_logical_axis_rules"


def merge_rules(lower: Sequence[Any], higher: Sequence[Any]) -> list[Any]:
    """Rules of `higher` replace all rules of `lower` with the same axis name; the others stay."""
    replaced = {rule[0] for rule in higher}
    return [*(rule for rule in lower if rule[0] not in replaced), *higher]


def rules_to_send(composed: Mapping[str, Any], model: Mapping[str, Any]) -> list[Any]:
    """The rules to hand to MaxText as an override: the model file's, then the composed ones.

    Args:
        composed: composed MaxText keys, which contain `logical_axis_rules`.
        model: keys of MaxText's own model file.
    """
    if composed.get(REPLACE_ALL):
        return list(composed[RULES])
    return merge_rules(model.get(RULES) or [], composed[RULES])


def expected_rules(composed: Mapping[str, Any], model: Mapping[str, Any], base: Mapping[str, Any]) -> list[Any]:
    """What MaxText must resolve to when the composed rules are honoured and no other rule is lost."""
    sent = rules_to_send(composed, model)
    if composed.get(REPLACE_ALL, model.get(REPLACE_ALL, False)):
        return sent
    return merge_rules(base.get(RULES) or [], sent)


def is_rule_list(value: Any) -> bool:
    """Whether a value has the shape of sharding rules: [[axis, mesh axis or list of mesh axes], ...]."""
    return isinstance(value, list | tuple) and all(
        isinstance(rule, list | tuple)
        and len(rule) == 2
        and isinstance(rule[0], str)
        and (rule[1] is None or isinstance(rule[1], str | list | tuple))
        for rule in value
    )
