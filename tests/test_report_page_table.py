"""The page's table and its list of points without a score."""

from typing import Any

from primus_hydra.report.model import Run
from primus_hydra.report.page_table import Table, list_failures, make_table
from primus_hydra.report.points import read_points
from tests.report_runs import TOKENS, make_report, make_run


def _table(*runs: Run) -> Table:
    return make_table(read_points(make_report(*runs)), TOKENS)


def test_columns_that_nobody_has_a_value_for_are_left_out() -> None:
    unknown: dict[str, Any] = {
        "peak_device_memory_gib": None,
        "compile_time_s": None,
        "tflops_per_second_per_device": None,
    }
    titles = [column.title for column in _table(make_run("a", **unknown)).columns]
    assert titles == [
        *("rank", "point", "tokens/s/device", "state", "step time, s", "final loss", "peak host memory, GiB", "steps")
    ]


def test_a_column_has_one_number_of_decimals_and_is_sorted_by_the_exact_figure() -> None:
    table = _table(make_run("a", 2, peak_device_memory_gib=159.04), make_run("b", 1, peak_device_memory_gib=98.0))
    column = [each.title for each in table.columns].index("peak device memory, GiB")
    assert [(row.cells[column].text, row.cells[column].sort) for row in table.rows] == [
        ("159.0", "159.04"),
        ("98.0", "98.0"),
    ]


def test_the_first_click_shows_the_best_first() -> None:
    first = {column.title: column.first for column in _table(make_run("a")).columns}
    assert (first["tokens/s/device"], first["step time, s"], first["rank"]) == ("descending", "ascending", "ascending")


def test_a_point_without_a_score_has_its_reason_and_one_with_a_score_only_that_of_its_repeats() -> None:
    table = _table(
        make_run("a"),
        make_run("b", state="failed", failure="crash", reason="Ended by SIGSEGV.", result={}),
        make_run("c", 1),
        make_run("c", 1, repeat=2, state="failed", failure="crash", reason="Ended by SIGKILL.", result={}),
    )
    assert [row.reason for row in table.rows] == [
        "",
        "repeat 2: failed (crash): Ended by SIGKILL.",
        "Ended by SIGSEGV.",
    ]
    assert [run.title for run in table.rows[1].runs] == ["/sweeps/one/c", "Repeat 2, failed: /sweeps/one/c"]


def test_points_that_ended_for_the_same_reason_are_listed_together() -> None:
    runs = [make_run(f"r{n}", state="invalid", reason="It is illegal.", result={}) for n in range(3)]
    timed_out = make_run("t", state="timed_out", failure="hung", reason="", result={})
    failures = list_failures(read_points(make_report(*runs, timed_out, make_run("ok"), make_run("p", state="planned"))))
    assert [(each.state, each.mark, each.reason, each.labels) for each in failures] == [
        ("invalid", "left-out", "It is illegal.", ("r0", "r1", "r2")),
        ("timed out (hung)", "bad", "No reason is recorded.", ("t",)),
    ]


def test_a_completed_run_without_a_figure_is_listed_too() -> None:
    short = make_run("a", None, too_few_steps=True, num_steps_measured=2, step_time_s={})
    (failure,) = list_failures(read_points(make_report(short)))
    assert (failure.state, failure.mark) == ("completed", "good")
    assert failure.reason.startswith("Too few steps")


def test_scores_are_compared_to_the_best_and_speed_to_the_peak() -> None:
    runs = [make_run("a", 1000, peak_bf16_tflops=8.0), make_run("b", 905)]
    table = _table(*runs)
    titles = [column.title for column in table.columns]
    shares, mfu = titles.index("vs best, %"), titles.index("MFU, % of the dense bf16 peak")
    assert [row.cells[shares].text for row in table.rows] == ["100.0", "90.5"]
    assert [row.cells[mfu].text for row in table.rows] == ["25.00", ""]


def test_a_foreign_run_has_a_mark_of_its_own() -> None:
    table = _table(make_run("a", state="foreign"), make_run("b", 1, state="foreign", failure="incomplete"))
    state = [column.title for column in table.columns].index("state")
    assert [row.cells[state].mark for row in table.rows] == ["foreign", "bad"]


def test_an_empty_report_has_an_empty_table() -> None:
    assert _table().rows == ()
