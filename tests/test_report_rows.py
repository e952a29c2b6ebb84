"""Rows: repeats together, ranks, ties."""

from typing import Any

import pytest

from primus_hydra.objective import OBJECTIVES, choose_objective
from primus_hydra.report.model import Row, Run
from primus_hydra.report.rows import make_rows
from tests.report_runs import TOKENS, make_run


def ranks(*runs: Run, objective: str = TOKENS.name, direction: str | None = None) -> dict[str, int | None]:
    return {row.point: row.rank for row in make_rows(runs, choose_objective(objective, direction))}


def make_row(*runs: Run, objective: str = TOKENS.name) -> Row:
    (row,) = make_rows(runs, OBJECTIVES[objective])
    return row


def test_the_fastest_point_comes_first() -> None:
    rows = make_rows([make_run("slow", 500), make_run("fast", 2000), make_run("middle", 1000)], TOKENS)
    assert [(row.point, row.rank, row.score) for row in rows] == [
        ("fast", 1, 2000),
        ("middle", 2, 1000),
        ("slow", 3, 500),
    ]


def test_points_whose_middle_halves_overlap_share_a_rank_and_the_next_has_its_position() -> None:
    assert ranks(make_run("a", 1000), make_run("b", 995), make_run("c", 900)) == {"a": 1, "b": 1, "c": 3}


def test_a_tie_is_with_the_best_of_its_rank_and_does_not_creep_on() -> None:
    found = ranks(*(make_run(str(tokens), tokens) for tokens in (1000, 985, 970, 955)))
    assert found == {"1000": 1, "985": 1, "970": 3, "955": 3}


@pytest.mark.parametrize(
    "state",
    ["failed", "invalid", "wont_fit", "running", "abandoned", "unreadable", "planned", "timed_out", "skipped"],
)
def test_only_a_completed_run_has_a_rank(state: str) -> None:
    assert ranks(make_run("other", 9000, state=state), make_run("done")) == {"done": 1, "other": None}


def test_a_foreign_run_has_a_rank_unless_its_files_show_a_failure() -> None:
    foreign: dict[str, Any] = {"state": "foreign"}
    runs = [
        make_run("mine"),
        make_run("theirs", 2000, **foreign),
        make_run("broken", 3000, failure="not_finite_loss", **foreign),
    ]
    assert ranks(*runs) == {"theirs": 1, "mine": 2, "broken": None}


@pytest.mark.parametrize("changes", [{"tokens": None}, {"tokens": float("nan")}, {"tokens": 0.0}])
def test_a_run_without_the_figure_has_no_rank_and_says_so(changes: dict[str, Any]) -> None:
    (done, none) = make_rows([make_run("none", **changes), make_run("done")], TOKENS)
    assert (done.rank, none.rank, none.reason) == (1, None, "Its tokens/s/device is not known.")


def test_too_few_steps_are_told_with_their_number() -> None:
    row = make_row(make_run("short", None, too_few_steps=True, step_time_s=None, num_steps_measured=2))
    assert row.reason == "Too few steps for a figure: 2 after 3 for the warm-up; 3 are needed."


def test_a_run_without_quartiles_is_ranked_by_its_median() -> None:
    times = {"median": 1.0}
    assert ranks(make_run("a", 1000, step_time_s=times), make_run("b", 999, step_time_s=times)) == {"a": 1, "b": 2}


def test_the_interval_of_a_speed_is_the_middle_half_of_the_step_times_turned_around() -> None:
    row = make_row(make_run("a", 1000, step_time_s={"median": 1.0, "p25": 0.8, "p75": 1.25}))
    assert (row.score_low, row.score_high) == pytest.approx((800, 1250))


def test_the_interval_of_the_step_time_is_its_middle_half_and_least_is_best() -> None:
    slow = make_run("slow", step_time_s={"median": 1.0, "p25": 0.9, "p75": 1.1})
    fast = make_run("fast", step_time_s={"median": 0.5, "p25": 0.4, "p75": 0.6})
    rows = make_rows([slow, fast], OBJECTIVES["step_time_s"])
    assert [(row.point, row.rank, row.score_low, row.score_high) for row in rows] == [
        ("fast", 1, 0.4, 0.6),
        ("slow", 2, 0.9, 1.1),
    ]


@pytest.mark.parametrize("objective", ["final_loss", "peak_device_memory_gib", "compile_time_s"])
def test_a_figure_without_spread_ties_only_with_an_equal_one(objective: str) -> None:
    figures: list[dict[str, Any]] = [{objective: value} for value in (4.0, 4.0, 4.0001)]
    runs = [make_run(name, **figure) for name, figure in zip("abc", figures, strict=True)]
    assert ranks(*runs, objective=objective) == {"a": 1, "b": 1, "c": 3}


def test_the_other_direction_ranks_the_other_way_round() -> None:
    runs = [make_run("a", final_loss=4.0), make_run("b", final_loss=5.0)]
    assert ranks(*runs, objective="final_loss", direction="maximize") == {"b": 1, "a": 2}


def test_repeats_are_one_row_with_the_median_and_their_own_range() -> None:
    row = make_row(*(make_run("a", tokens, repeat=repeat) for repeat, tokens in ((2, 900), (1, 1000), (3, 1040))))
    assert (row.point, row.num_repeats, row.num_completed, row.num_steps_measured) == ("a", 3, 3, 15)
    assert (row.score, row.score_low, row.score_high) == (1000, 900, 1040)
    assert (row.tokens_per_second_per_device, row.state, row.reason) == (1000, "completed", "")


def test_the_range_of_repeats_decides_about_ties_however_narrow_their_step_times_are() -> None:
    noisy = [
        make_run("noisy", tokens, repeat=repeat, spread=0.0) for repeat, tokens in enumerate((1000, 1200, 1400), 1)
    ]
    steady = [
        make_run("steady", tokens, repeat=repeat, spread=0.0) for repeat, tokens in enumerate((990, 1000, 1010), 1)
    ]
    slow = [make_run("slow", tokens, repeat=repeat, spread=0.5) for repeat, tokens in enumerate((700, 710, 720), 1)]
    assert ranks(*noisy, *steady, *slow) == {"noisy": 1, "steady": 1, "slow": 3}


def test_a_failed_repeat_neither_scores_nor_hides() -> None:
    runs = [
        make_run("a", 9000, state="failed", failure="not_finite_loss", reason="NaN at step 2."),
        make_run("a", 1000, repeat=2),
        make_run("a", 1100, repeat=3, state="running", reason="", failure=None),
    ]
    row = make_row(*runs)
    assert (row.state, row.failure, row.score, row.num_repeats, row.num_completed) == ("completed", None, 1000, 3, 1)
    assert row.reason == "repeat 1: failed (not_finite_loss): NaN at step 2. repeat 3: running"
    assert (row.score_low, row.score_high) == pytest.approx((1000 / 1.01, 1000 / 0.99))


def test_a_point_whose_repeats_all_failed_has_the_first_ones_state_and_figures() -> None:
    runs = [
        make_run("a", 10, state="failed", failure="crash", reason="It broke."),
        make_run("a", 20, repeat=2, state="planned"),
    ]
    row = make_row(*runs)
    assert (row.state, row.failure, row.rank, row.score, row.tokens_per_second_per_device) == (
        "failed",
        "crash",
        None,
        None,
        10,
    )


def test_a_skipped_point_keeps_its_figures_and_its_reason_without_a_score() -> None:
    row = make_row(make_run("a", 500, state="skipped", failure="rung", reason="Stopped after 20 of 100 steps."))
    assert (row.rank, row.tokens_per_second_per_device) == (None, 500)
    assert row.reason == "Stopped after 20 of 100 steps."


def test_points_of_the_same_name_in_two_sweeps_stay_apart() -> None:
    rows = make_rows([make_run("a", 1000), make_run("a", 500, sweep="two")], TOKENS)
    assert [(row.sweep, row.rank) for row in rows] == [("one", 1), ("two", 2)]


def test_repeats_on_different_platforms_show_both() -> None:
    assert make_row(make_run("a", platform="cpu"), make_run("a", repeat=2)).platform == "cpu, gpu"
