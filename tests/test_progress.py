"""What a person sees while a run goes on."""

import io
import math

import pytest
from rich.console import Console

from primus_hydra.maxtext.metrics import StepHistory, StepRecord
from primus_hydra.progress import RunProgress, Voice, format_duration


def record(step: int, step_time_s: float | None = 2.0) -> StepRecord:
    return StepRecord(
        step=step,
        step_time_s=step_time_s,
        loss=5.5,
        tokens_per_device=4000.0,
        tflops_per_device=50.0,
        total_weights=1.0,
    )


def show(total: int | None, steps: range, *, log_period: int = 100, terminal: bool = False) -> str:
    """Everything that is shown for a run whose steps are seen one by one."""
    file = io.StringIO()
    voice = Voice(Console(file=file, width=120, force_terminal=terminal))
    progress = RunProgress(voice, total_steps=total, log_period=log_period, first_phase="importing MaxText")
    history = StepHistory()
    progress.update(history)
    progress.read("train.py:1] System Information: Jax Backend: cpu")
    progress.update(history)
    for step in steps:
        history.add_metrics([record(step)])
        progress.update(history)
    progress.close()
    return file.getvalue()


def test_plain_lines_name_phase_step_loss_speed_and_time_left() -> None:
    lines = show(5, range(2)).splitlines()
    assert lines[0] == "importing MaxText ..."
    assert lines[1].startswith("building the model ...")
    assert lines[2] == "step 1/5  loss 5.500  2,000 tok/s/dev  25 TFLOP/s/dev  0s"  # the first step compiles
    assert lines[3] == "step 2/5  loss 5.500  2,000 tok/s/dev  25 TFLOP/s/dev  0s  ETA 6s"


def test_plain_lines_come_every_tenth_of_the_run_and_at_its_end() -> None:
    lines = [line.split()[1] for line in show(1000, range(1000)).splitlines() if line.startswith("step")]
    assert lines == ["1/1000", *(f"{step}/1000" for step in range(100, 1001, 100))]


def test_log_period_makes_lines_more_frequent() -> None:
    lines = [line for line in show(1000, range(100), log_period=10).splitlines() if line.startswith("step")]
    assert len(lines) == 11


def test_the_last_step_is_said_although_the_run_ended_early() -> None:
    assert "step 7/1000" in show(1000, range(7))


def test_an_unknown_number_of_steps_has_no_time_left() -> None:
    shown = show(None, range(3))
    assert "step 3/?" in shown
    assert "ETA" not in shown


def test_a_resumed_run_says_so_once() -> None:
    assert show(50, range(10, 20)).count("resumed at step 10") == 1


def test_a_terminal_has_a_live_line_instead() -> None:
    shown = show(50, range(3), terminal=True)
    assert "\x1b[" in shown
    assert "building the model" in shown
    assert "step 3/50" in shown
    assert "2,000 tok/s/dev" in shown


def test_a_console_that_goes_away_does_not_raise() -> None:
    file = io.StringIO()
    voice = Voice(Console(file=file))
    file.close()
    voice.say("hello")
    voice.say("hello again")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59, "59s"), (65, "1m05s"), (3600, "1h00m"), (7384, "2h03m"), (math.inf, "?"), (math.nan, "?")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("step_time_s", [None, math.nan, math.inf, 1e308, 5e-324])
def test_a_display_forgives_every_figure(step_time_s: float | None, terminal: bool) -> None:
    file = io.StringIO()
    progress = RunProgress(
        Voice(Console(file=file, width=120, force_terminal=terminal)), total_steps=50, log_period=1, first_phase="x"
    )
    history = StepHistory()
    for step in (0, 1, 10**300):
        history.add_metrics([record(step, step_time_s)])
        progress.update(history)
    progress.close()
    assert "step 2/50" in file.getvalue()


def test_a_console_that_cannot_spell_a_line_shows_it_escaped_and_goes_on() -> None:
    raw = io.BytesIO()
    voice = Voice(Console(file=io.TextIOWrapper(raw, encoding="ascii")))
    voice.say("λ [bold]")
    voice.say("next")
    assert raw.getvalue() == b"\\u03bb [bold]\nnext\n"
