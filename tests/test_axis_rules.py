"""primus_hydra.maxtext.axis_rules: one overridden rule must not wipe the others."""

from primus_hydra.maxtext.axis_rules import expected_rules, merge_rules, rules_to_send

BASE = {"logical_axis_rules": [["mlp", ["a"]], ["embed", ["b"]], ["embed", ["c"]], ["heads", ["d"]]]}
MODEL = {"logical_axis_rules": [["heads", ["m"]]]}
MINE = {"logical_axis_rules": [["mlp", ["x"]]]}


def test_rules_of_the_same_axis_are_replaced_and_the_others_stay() -> None:
    assert merge_rules([["a", 1], ["a", 2], ["b", 3]], [["a", 4]]) == [["b", 3], ["a", 4]]


def test_the_model_files_rules_travel_with_ours() -> None:
    assert rules_to_send(MINE, MODEL) == [["heads", ["m"]], ["mlp", ["x"]]]


def test_nothing_of_the_base_file_is_lost() -> None:
    expected = [["embed", ["b"]], ["embed", ["c"]], ["heads", ["m"]], ["mlp", ["x"]]]
    assert expected_rules(MINE, MODEL, BASE) == expected


def test_full_replacement_has_to_be_asked_for() -> None:
    replaced = {**MINE, "override_logical_axis_rules": True}
    assert rules_to_send(replaced, MODEL) == MINE["logical_axis_rules"]
    assert expected_rules(replaced, MODEL, BASE) == MINE["logical_axis_rules"]
