"""Entries of a table's column without the names that all of them share."""

from primus_hydra.report.short_names import describe_differences, shorten


def test_names_that_every_point_sets_become_the_title() -> None:
    title, entries = shorten(["remat_policy=full quantization=int8", "remat_policy=minimal quantization="])
    assert title == "remat_policy · quantization"
    assert entries == ["full · int8", 'minimal · ""']


def test_points_that_set_different_names_keep_them() -> None:
    texts = ["remat_policy=full", "steps=3 remat_policy=full", "0002-a-single-folder"]
    assert shorten(texts) == ("what differs", texts)


def test_a_single_point_keeps_its_text() -> None:
    assert shorten(["steps=3"]) == ("what differs", ["steps=3"])


def test_a_value_with_blanks_is_not_taken_apart() -> None:
    texts = ['platform.env.A="x y"', 'platform.env.A="z"']
    assert shorten(texts) == ("what differs", texts)


def test_what_all_runs_share_is_not_said() -> None:
    assert describe_differences([["a=1", "b=2"], ["a=1", "b=3"], ["a=1"]]) == ["b=2", "b=3", ""]
