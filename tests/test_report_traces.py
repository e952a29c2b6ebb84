"""Loss curves and step times as data."""

import math

from primus_hydra.report import traces
from primus_hydra.report.model import Step
from primus_hydra.report.points import read_points
from tests.report_runs import make_report, make_run


def _steps(count: int, loss: float | None = 1.0, seconds: float = 1.0) -> list[Step]:
    return [Step(step=number, loss=loss, step_time_s=seconds) for number in range(count)]


def test_the_best_points_and_those_that_diverged_get_curves() -> None:
    runs = [make_run(f"r{number:02}", 1000 + number) for number in range(20)]
    nan = [make_run(f"nan{number}", state="failed", failure="not_finite_loss") for number in range(9)]
    chosen = traces.choose_traced(read_points(make_report(*runs, *nan, make_run("oom", state="failed"))))
    assert [point.label for point, _ in chosen][:2] == ["r19", "r18"]
    assert len(chosen) == traces.MAX_CURVES + traces.MAX_DIVERGED


def test_the_first_completed_repeat_stands_for_its_point() -> None:
    report = make_report(make_run("a", state="failed", failure="crash"), make_run("a", repeat=2))
    assert [run.repeat for _, run in traces.choose_traced(read_points(report))] == [2]


def test_a_short_curve_is_kept_whole() -> None:
    steps = _steps(traces.MAX_CURVE_POINTS)
    assert traces.thin_out_steps(steps) == tuple(steps)


def test_a_long_curve_keeps_its_ends_its_peaks_and_its_gaps() -> None:
    steps = [Step(step=number, loss=5 + math.sin(number), step_time_s=1.0) for number in range(10_000)]
    steps[1234] = Step(step=1234, loss=99.0, step_time_s=1.0)
    steps[4321] = Step(step=4321, loss=-7.0, step_time_s=1.0)
    steps[7777] = Step(step=7777, loss=None, step_time_s=1.0)
    kept = traces.thin_out_steps(steps)
    assert len(kept) <= traces.MAX_CURVE_POINTS
    assert {0, 1234, 4321, 7777, 9999} <= {step.step for step in kept}
    assert [step.step for step in kept] == sorted({step.step for step in kept})


def test_every_length_and_every_gap_stay_below_the_limit() -> None:
    for count in (301, 302, 599, 1201, 5000):
        for every in (1, 2, 3, 50):
            steps = [
                Step(step=n, loss=None if n % every == 0 else float(n % 7), step_time_s=None) for n in range(count)
            ]
            kept = traces.thin_out_steps(steps)
            assert 0 < len(kept) <= traces.MAX_CURVE_POINTS
            assert (kept[0], kept[-1]) == (steps[0], steps[-1])


def test_where_a_loss_stops_being_finite_is_told() -> None:
    steps = [*_steps(5, loss=2.0), Step(step=5, loss=None, step_time_s=1.0)]
    assert traces.list_last_finite({"bad": steps, "good": _steps(5)}) == (traces.LastFinite("bad", 4, 2.0),)


def test_a_gap_in_the_middle_is_no_end() -> None:
    steps = [*_steps(2), Step(step=2, loss=None, step_time_s=1.0), Step(step=3, loss=1.0, step_time_s=1.0)]
    assert traces.list_last_finite({"a": steps}) == ()
    assert [point.loss for point in traces.list_losses({"a": steps})] == [1.0, 1.0, None, 1.0]


def test_step_times_leave_the_warm_up_out_and_mark_it() -> None:
    times = [60.0, 9.0, 1.0, 1.1, 1.2, 1.3, 1.4, 8.0]
    steps = [Step(step=10 + number, loss=1.0, step_time_s=seconds) for number, seconds in enumerate(times)]
    (spread,) = traces.list_step_times({"a": steps}, {"a": 2})
    assert (spread.num_steps, spread.median_s) == (6, 1.25)
    marks = traces.list_step_marks({"a": steps}, {"a": 2})
    assert [(mark.step, mark.is_warmup) for mark in marks] == [(10, True), (11, True), (17, False)]


def test_equal_step_times_have_no_far_off_step() -> None:
    assert traces.list_step_marks({"a": _steps(50)}, {}) == ()


def test_far_off_steps_are_limited_to_the_farthest() -> None:
    steps = [Step(step=n, loss=1.0, step_time_s=1.0 + n if n % 5 == 0 else 0.9 + n % 2 / 10) for n in range(500)]
    marks = traces.list_step_marks({"a": steps}, {"a": 0})
    assert len(marks) == traces.MAX_OUTLIERS
    assert min(mark.step for mark in marks) == 400


def test_too_few_or_unknown_step_times_have_no_distribution() -> None:
    unknown = [Step(step=number, loss=1.0, step_time_s=None) for number in range(9)]
    assert traces.list_step_times({"few": _steps(5), "unknown": unknown, "none": []}, {"few": 3}) == ()
