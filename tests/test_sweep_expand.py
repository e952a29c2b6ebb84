"""Grids, paired lists and single points: which points they make, and which shapes are wrong."""

from typing import Any

import pytest

from primus_hydra.sweep.expand import Space, check_shapes, expand

GRID = {"remat_policy": ["full", "minimal"], "precision": ["bf16", "fp8"]}
PAIR = {"per_device_batch_size": [1, 2], "max_target_length": [4096, 2048]}


def make_space(grid: Any = None, pairs: Any = None, points: Any = None) -> Space:
    return Space(grid={} if grid is None else grid, zip=pairs or [], points=points or [])


def test_a_grid_is_every_combination_with_the_last_name_moving_fastest() -> None:
    points = expand(make_space(GRID), ())
    assert [tuple(point.values()) for point in points] == [
        ("full", "bf16"),
        ("full", "fp8"),
        ("minimal", "bf16"),
        ("minimal", "fp8"),
    ]


def test_paired_lists_go_together_by_position_and_cross_with_the_grid() -> None:
    points = expand(make_space({"steps": [10, 20]}, [PAIR]), ())
    assert len(points) == 4
    assert {(point["per_device_batch_size"], point["max_target_length"]) for point in points} == {(1, 4096), (2, 2048)}


def test_single_points_join_the_grid_and_none_is_there_twice() -> None:
    again = {"precision": "fp8", "remat_policy": "full"}
    points = expand(make_space(GRID, points=[{"remat_policy": "save_qkv_proj"}, again]), ())
    assert len(points) == 5
    assert points[-1] == {"remat_policy": "save_qkv_proj"}


def test_single_points_alone_are_all_there_is() -> None:
    assert expand(make_space(points=[{"steps": 1}, {"steps": 2}]), ()) == [{"steps": 1}, {"steps": 2}]


def test_values_of_different_types_are_different_points() -> None:
    assert len(expand(make_space({"quantization": ["", None, "fp8"]}), ())) == 3
    assert len(expand(make_space(points=[{"x": 1}, {"x": True}, {"x": "1"}]), ())) == 3


def test_a_name_on_the_command_line_leaves_the_space() -> None:
    assert expand(make_space(GRID), {"precision"}) == [{"remat_policy": "full"}, {"remat_policy": "minimal"}]
    assert expand(make_space(pairs=[PAIR]), {"max_target_length"}) == [
        {"per_device_batch_size": 1},
        {"per_device_batch_size": 2},
    ]
    assert expand(make_space(points=[{"steps": 1}, {"steps": 2}]), {"steps"}) == [{}]


def test_a_space_that_says_nothing_is_one_point() -> None:
    assert expand(make_space(), ()) == [{}]
    assert not make_space()
    assert make_space(GRID)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (make_space(grid=["steps"]), "sweep.grid=['steps'] is no mapping"),
        (make_space(grid={"steps": 3}), "sweep.grid.steps=3 is no list. Write [3]"),
        (make_space(grid={"steps": []}), "sweep.grid.steps is an empty list"),
        (make_space(grid={"platform": {"env": {"A": ["1"]}}}), "Write the name in one piece: platform.env: [...]"),
        (make_space(pairs=PAIR), "is no list of mappings"),
        (
            make_space(pairs=[{"steps": [1, 2], "log_period": [1]}]),
            "sweep.zip[0] are not equally long: steps has 2, log_period has 1",
        ),
        (make_space(pairs=[{"steps": []}]), "sweep.zip[0].steps is an empty list"),
        (make_space(points=["steps=1"]), "sweep.points=['steps=1'] is no list of mappings"),
        (make_space(points=[{}]), "sweep.points=[{}] is no list of mappings"),
        (make_space({"steps": [1]}, [{"steps": [2]}]), "steps has values in more than one place"),
    ],
)
def test_a_wrong_shape_is_told_with_what_to_write(space: Space, words: str) -> None:
    (problem,) = check_shapes(space, lambda setting: f"file of {setting}")
    assert words in f"{problem.what} {problem.fix}"
    assert problem.origin.startswith("file of sweep.")


def test_all_wrong_shapes_are_told_at_once() -> None:
    space = Space(grid={"a": 1, "b": []}, zip=[{"c": [1], "d": [1, 2]}], points=[1])
    assert len(check_shapes(space, str)) == 4
