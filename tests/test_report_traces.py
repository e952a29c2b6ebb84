"""Loss curves and step times as data."""

import math
from collections.abc import Sequence

from primus_hydra.report import traces
from primus_hydra.report.model import Step
from primus_hydra.report.points import read_points
from tests.report_runs import make_report, make_run


def _steps(count: int, loss: float | None = 1.0, seconds: float = 1.0) -> list[Step]:
    return [Step(step=number, loss=loss, step_time_s=seconds) for number in range(count)]


def _one(steps: Sequence[Step], warmup_steps: int = 0) -> list[traces.Trace]:
    return [traces.Trace(steps, warmup_steps)]


def test_the_best_points_and_those_that_diverged_get_curves() -> None:
    runs = [make_run(f"r{number:02}", 1000 + number) for number in range(20)]
    nan = [make_run(f"nan{number}", state="failed", failure="not_finite_loss") for number in range(9)]
    chosen = traces.choose_traced(read_points(make_report(*runs, *nan, make_run("oom", state="failed"))))
    assert [point.label for point, _ in chosen][:2] == ["r19", "r18"]
    assert len(chosen) == traces.MAX_CURVES + traces.MAX_DIVERGED


def test_points_that_were_stopped_early_get_curves_too() -> None:
    slow = make_run("slow", state="skipped", failure="slow")
    chosen = traces.choose_traced(read_points(make_report(make_run("a", 1000), slow)))
    assert [point.row.state for point, _ in chosen] == ["completed", "skipped"]


def test_a_run_that_went_on_has_one_curve_from_its_first_step() -> None:
    earlier, later = _steps(8)[:5], _steps(8)[5:]
    curve = traces.list_losses({"a": [traces.Trace(later, 3, 1, earlier)]})
    assert [point.step for point in curve] == list(range(8))
    assert traces.list_step_times({"a": [traces.Trace(later, 0, 1, earlier)]})[0].num_steps == 3


def test_the_completed_repeats_stand_for_their_point() -> None:
    repeats = [make_run("a", repeat=number) for number in (2, 3)]
    report = make_report(make_run("a", state="failed", failure="crash"), *repeats)
    ((_, runs),) = traces.choose_traced(read_points(report))
    assert [run.repeat for run in runs] == [2, 3]


def test_the_steps_of_all_repeats_are_pooled_and_their_median_is_the_tables() -> None:
    repeats = [
        traces.Trace(_steps(9, seconds=seconds), 2, number) for number, seconds in ((1, 1.0), (2, 3.0), (3, 4.0))
    ]
    (spread,) = traces.list_step_times({"a": repeats})
    assert (spread.num_steps, spread.median_s, spread.p5_s, spread.p95_s) == (21, 3.0, 1.0, 4.0)
    assert {(mark.repeat, mark.step) for mark in traces.list_step_marks({"a": repeats}) if mark.is_warmup} == {
        (repeat, step) for repeat in (1, 2, 3) for step in (0, 1)
    }


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
    assert traces.list_last_finite({"bad": _one(steps), "good": _one(_steps(5))}) == (traces.LastFinite("bad", 4, 2.0),)


def test_a_gap_in_the_middle_is_no_end() -> None:
    steps = [*_steps(2), Step(step=2, loss=None, step_time_s=1.0), Step(step=3, loss=1.0, step_time_s=1.0)]
    assert traces.list_last_finite({"a": _one(steps)}) == ()
    assert [point.loss for point in traces.list_losses({"a": _one(steps)})] == [1.0, 1.0, None, 1.0]


def test_step_times_leave_the_warm_up_out_and_mark_it() -> None:
    times = [60.0, 9.0, 1.0, 1.1, 1.2, 1.3, 1.4, 8.0]
    steps = [Step(step=10 + number, loss=1.0, step_time_s=seconds) for number, seconds in enumerate(times)]
    (spread,) = traces.list_step_times({"a": _one(steps, 2)})
    assert (spread.num_steps, spread.median_s) == (6, 1.25)
    marks = traces.list_step_marks({"a": _one(steps, 2)})
    assert [(mark.step, mark.is_warmup) for mark in marks] == [(10, True), (11, True), (17, False)]


def test_equal_step_times_have_no_far_off_step() -> None:
    assert traces.list_step_marks({"a": _one(_steps(50))}) == ()


def test_far_off_steps_are_limited_to_the_farthest() -> None:
    steps = [Step(step=n, loss=1.0, step_time_s=1.0 + n if n % 5 == 0 else 0.9 + n % 2 / 10) for n in range(500)]
    marks = traces.list_step_marks({"a": _one(steps)})
    assert len(marks) == traces.MAX_OUTLIERS
    assert min(mark.step for mark in marks) == 400


def test_too_few_or_unknown_step_times_have_no_distribution() -> None:
    unknown = [Step(step=number, loss=1.0, step_time_s=None) for number in range(9)]
    too_few = {"few": _one(_steps(5), 3), "unknown": _one(unknown), "none": _one([])}
    assert traces.list_step_times(too_few) == ()
