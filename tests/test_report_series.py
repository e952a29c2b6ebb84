"""The data of the charts that compare points."""

import pytest

from primus_hydra.objective import OBJECTIVES, choose_objective
from primus_hydra.report import series
from primus_hydra.report.model import Run
from primus_hydra.report.points import Point, read_points
from tests.report_runs import TOKENS, make_report, make_run

STEP_TIME = OBJECTIVES["step_time_s"]
MEMORY = OBJECTIVES["peak_device_memory_gib"]


def _points(*runs: Run) -> tuple[Point, ...]:
    return read_points(make_report(*runs))


def test_scores_have_the_interval_and_the_rank_of_their_row() -> None:
    points = _points(make_run("a", 1000, spread=0.1), make_run("b", 500, spread=0.0), make_run("c", state="failed"))
    first, second = series.list_scores(points)
    assert (first.label, first.rank, first.score) == ("a", 1, 1000)
    assert [first.low, first.high] == pytest.approx([1000 / 1.1, 1000 / 0.9])
    assert second == series.ScorePoint("b", 500, 500, 500, 2)


def test_only_the_best_points_are_shown() -> None:
    points = _points(*(make_run(f"r{number}", 100 + number) for number in range(50)))
    shown = series.list_scores(points)
    assert len(shown) == len(series.list_memory(points)) == series.MAX_POINTS
    assert shown[0].label == "r49"


def test_device_memory_is_shown_with_the_spread_of_its_repeats() -> None:
    points = _points(
        make_run("a", peak_device_memory_gib=90.0),
        make_run("a", repeat=2, peak_device_memory_gib=100.0),
        make_run("a", repeat=3, peak_device_memory_gib=500.0, state="failed", failure="crash"),
    )
    assert series.list_memory(points) == (series.MemoryPoint("a", 95.0, 90.0, 100.0, 1),)
    assert series.find_memory_kind(points) == "device"


def test_without_device_memory_it_is_the_hosts_and_without_either_there_is_no_chart() -> None:
    host = _points(make_run("a", peak_device_memory_gib=None, peak_host_memory_gib=3.5))
    assert series.find_memory_kind(host) == "host"
    assert series.list_memory(host)[0].memory_gib == 3.5
    neither = _points(make_run("a", peak_device_memory_gib=None, peak_host_memory_gib=None))
    assert series.find_memory_kind(neither) is None
    assert (series.list_memory(neither), series.list_front(neither, TOKENS)) == ((), ())


def test_a_failed_run_shows_no_memory() -> None:
    assert series.list_memory(_points(make_run("a", state="failed", failure="out_of_memory"))) == ()


def test_the_front_holds_what_no_other_point_beats() -> None:
    figures = {"small": (10, 100), "even": (20, 200), "bad": (20, 150), "worse": (30, 199), "fast": (40, 300)}
    points = _points(*(make_run(name, speed, peak_device_memory_gib=gib) for name, (gib, speed) in figures.items()))
    front = series.list_front(points, TOKENS)
    assert [(point.label, point.on_front) for point in front] == [
        ("small", True),
        ("even", True),
        ("bad", False),
        ("worse", False),
        ("fast", True),
    ]


def test_equal_points_are_both_on_the_front() -> None:
    points = _points(make_run("a", 100, peak_device_memory_gib=10.0), make_run("b", 100, peak_device_memory_gib=10.0))
    assert [point.on_front for point in series.list_front(points, TOKENS)] == [True, True]


def test_memory_that_differs_by_less_than_a_percent_counts_as_equal() -> None:
    figures = {"slow": (100.0, 100), "noise": (100.5, 200), "more": (102.0, 300)}
    points = _points(*(make_run(name, speed, peak_device_memory_gib=gib) for name, (gib, speed) in figures.items()))
    front = series.list_front(points, TOKENS)
    assert [(point.label, point.on_front) for point in front] == [("slow", False), ("noise", True), ("more", True)]


def test_less_time_is_more_speed_on_the_front() -> None:
    times = {"slow": 2.0, "fast": 1.0}
    runs = [
        make_run(name, step_time_s={"median": seconds, "p25": seconds, "p75": seconds}, peak_device_memory_gib=gib)
        for (name, seconds), gib in zip(times.items(), (20.0, 10.0), strict=True)
    ]
    points = read_points(make_report(*runs, objective=STEP_TIME))
    assert [(point.label, point.on_front) for point in series.list_front(points, STEP_TIME)] == [
        ("fast", True),
        ("slow", False),
    ]


@pytest.mark.parametrize("name", ["final_loss", "peak_device_memory_gib", "compile_time_s"])
def test_an_objective_that_is_no_speed_stands_back_for_tokens(name: str) -> None:
    assert series.choose_speed(choose_objective(name)) == TOKENS


def test_a_speed_keeps_the_direction_that_was_asked_for() -> None:
    assert series.choose_speed(choose_objective("step_time_s")) == STEP_TIME
    assert series.choose_speed(MEMORY).maximize
