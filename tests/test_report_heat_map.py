"""The heat map's data."""

import itertools
from collections.abc import Sequence

from primus_hydra.objective import OBJECTIVES
from primus_hydra.report.heat_map import MAX_PANELS, NUM_LEVELS, make_heat_map
from primus_hydra.report.model import Run
from primus_hydra.report.points import Point, read_points
from tests.report_runs import TOKENS, make_report, make_run


def _grid(**keys: Sequence[str]) -> list[tuple[str, ...]]:
    return [
        tuple(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        for values in itertools.product(*keys.values())
    ]


def _points(*runs: Run) -> tuple[Point, ...]:
    return read_points(make_report(*runs))


def test_the_heat_map_is_remat_policy_by_quantization_with_a_panel_for_each_attention() -> None:
    grid = _grid(attention=("flash", "dot"), quantization=("", "fp8"), remat_policy=("full", "minimal"))
    runs = [make_run(f"{number}", 1000 + number, overrides=overrides) for number, overrides in enumerate(grid)]
    runs[7] = make_run("7", overrides=grid[7], state="invalid", result={})
    heat = make_heat_map(_points(*runs), TOKENS)
    assert heat is not None
    assert (heat.row_key, heat.column_key, heat.panel_key) == ("remat_policy", "quantization", "attention")
    assert (heat.rows, heat.columns) == (("full", "minimal"), ("", "fp8"))
    flash, dot = (cells for _, cells in heat.panels)
    assert [cell.score for cell in flash] == [1000, 1002, 1001, 1003]
    assert [(cell.score, cell.level, cell.state) for cell in dot][-1] == (None, None, "invalid")
    assert (flash[0].level, dot[1].level) == (0, NUM_LEVELS - 1)


def test_other_keys_make_a_heat_map_too_and_a_cell_shows_its_best_point() -> None:
    grid = _grid(scan_layers=("true", "false"), steps=("1", "2", "3"), log_period=("1", "2"), dtype=("a", "b"))
    runs = [make_run(f"{number:02}", 1000 + number, overrides=overrides) for number, overrides in enumerate(grid)]
    heat = make_heat_map(_points(*runs), TOKENS)
    assert heat is not None
    assert (heat.row_key, heat.column_key, heat.panel_key) == ("steps", "scan_layers", "log_period")
    assert [cell.score for cell in heat.panels[0][1]] == [1001, 1013, 1005, 1017, 1009, 1021]


def test_where_less_is_better_the_least_has_the_strongest_colour() -> None:
    grid = _grid(remat_policy=("full", "minimal"), quantization=("", "fp8"))
    runs = [make_run(f"{number}", overrides=grid[number], final_loss=2.0 + number) for number in range(4)]
    report = make_report(*runs, objective=OBJECTIVES["final_loss"])
    heat = make_heat_map(read_points(report), report.objective)
    assert heat is not None
    assert {cell.score: cell.level for cell in heat.panels[0][1]} == {2.0: 6, 3.0: 4, 4.0: 2, 5.0: 0}


def test_one_key_a_key_of_many_values_or_no_score_make_no_heat_map() -> None:
    grid = _grid(remat_policy=("full", "minimal"), steps=[str(number) for number in range(13)])
    many = [make_run(f"{number}", overrides=overrides) for number, overrides in enumerate(grid)]
    failed = [
        make_run(f"{number}", overrides=overrides, state="failed", result={})
        for number, overrides in enumerate(_grid(remat_policy=("full", "minimal"), quantization=("", "fp8")))
    ]
    assert make_heat_map(_points(*many), TOKENS) is None
    assert make_heat_map(_points(*failed), TOKENS) is None
    assert make_heat_map((), TOKENS) is None


def test_panels_are_limited_and_the_number_of_all_is_kept() -> None:
    grid = _grid(remat_policy=("full", "minimal"), quantization=("", "fp8"), steps=[str(number) for number in range(8)])
    heat = make_heat_map(
        _points(*(make_run(f"{number:02}", overrides=overrides) for number, overrides in enumerate(grid))), TOKENS
    )
    assert heat is not None
    assert (len(heat.panels), heat.num_panels) == (MAX_PANELS, 8)
