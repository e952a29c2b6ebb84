"""primus_hydra.maxtext.names: tables of names must follow the installed MaxText."""

from primus_hydra.maxtext.keys import load_keys
from primus_hydra.maxtext.names import HABITS, REPLACED, unknown_key


def test_replaced_keys_are_really_gone() -> None:
    assert not REPLACED.keys() & load_keys().keys()


def test_habits_point_to_keys_that_exist_and_do_not_shadow_any() -> None:
    assert set(HABITS.values()) <= load_keys().keys()
    assert not HABITS.keys() & load_keys().keys()


def test_an_unlike_name_points_to_the_list_of_all_keys() -> None:
    assert "explain.defaults=true" in unknown_key("zzzqqq", "a file", []).fix


def test_the_message_is_short() -> None:
    problem = unknown_key("pure_nnx_decoder", "conf/experiment/x.yaml", [])
    assert len(problem.what + problem.fix) < 2000
    assert problem.origin == "conf/experiment/x.yaml"
