"""What a person sees of a sweep while it runs."""

import fcntl
import io
import math
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.objective import OBJECTIVES
from primus_hydra.progress import Voice
from primus_hydra.sweep.ending import Ending
from primus_hydra.sweep.live import Glance, SweepView, describe_sweep, draw
from primus_hydra.sweep.tally import Tally
from tests.run_folders import plan_stub_run

TOKENS = OBJECTIVES["tokens_per_second_per_device"]


def glance(differs: str = "remat_policy=full", *, step: int | None = 9, **fields: Any) -> Glance:
    latest = None
    if step is not None:
        latest = StepRecord(
            step=step,
            step_time_s=0.5,
            loss=3.21,
            tokens_per_device=1000.0,
            tflops_per_device=50.0,
            total_weights=1.0,
        )
    known = {"total_steps": 100, "elapsed_s": 65.0, "rest_s": 45.0}
    return Glance(differs=differs, latest=latest, **{**known, **fields})


def completed(tokens: float | None) -> Ending:
    result = {"tokens_per_second_per_device": tokens, "too_few_steps": tokens is None}
    return Ending(state="completed", record={"state": "completed", "wall_s": 125.0, "result": result})


def make_tally(num_jobs: int = 16) -> Tally:
    tally = Tally(TOKENS, num_jobs, [])
    tally.add("remat_policy=minimal", completed(2345.0))
    tally.add("remat_policy=none", Ending(state="failed", failure="out_of_memory", reason="Out of memory."))
    return tally


def paint(*glances: Glance, height: int = 24, width: int = 120) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(draw(glances, make_tally(), 3, 4, console.options))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_each_running_job_has_a_line_and_the_sweep_a_summary() -> None:
    *lines, summary = paint(glance(), glance("remat_policy=none", step=None, rest_s=None))
    assert lines == [
        "remat_policy=full  step 10/100  loss 3.210  2,000 tok/s/dev  1m05s  ETA 45s",
        "remat_policy=none     starting                               1m05s",
    ]
    best = "best 2,345 tokens/s/device: remat_policy=minimal"
    assert summary == f"2/16 done: 1 completed, 1 failed, 2 running, 3 waiting  ETA 2m00s  {best}"


def test_more_jobs_than_a_terminal_has_lines_are_counted() -> None:
    lines = paint(*(glance(f"point {number}") for number in range(100)), height=10)
    assert len(lines) == 9
    assert lines[6].startswith("point 6 ")
    assert lines[7] == "... and 93 more"
    assert "100 running" in lines[8]


def test_on_a_narrow_terminal_names_are_cut_and_figures_stay() -> None:
    line, _ = paint(glance("quantization=nanoo_fp8 attention=cudnn_flash_te " * 4), width=100)
    assert line.startswith("quantization=nanoo_fp8")
    assert "…" in line
    assert line.endswith("step 10/100  loss 3.210  2,000 tok/s/dev  1m05s  ETA 45s")


def test_names_are_neither_markup_nor_terminal_commands() -> None:
    assert paint(glance("a=[red]x[/red]\n\x1b[2J"))[0].startswith("a=[red]x[/red] \\x1b[2J")


def test_an_unknown_length_has_no_time_left() -> None:
    summary = describe_sweep([glance(total_steps=None, rest_s=None)], Tally(TOKENS, 3, []), 2, 1)
    assert summary == "0/3 done: 1 running, 2 waiting"


def say(*events: tuple[str, tuple[Any, ...], dict[str, Any]], console: Console | None = None) -> list[str]:
    """Plain lines for calls of a view: (name of the method, arguments, keywords)."""
    console = console or Console(file=io.StringIO(), width=40)
    with SweepView(Voice(console)) as view:
        for name, arguments, keywords in events:
            getattr(view, name)(*arguments, **keywords)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_plain_lines_tell_each_start_and_each_end() -> None:
    failed = Ending(state="failed", failure="crash", reason="Exit code 1\nafter step 3.", record={"wall_s": 61.0})
    assert say(
        ("tell_start", ("a=[b]1[/b]",), {"slot": "GPU 0,1"}),
        ("tell_retry", ("a=[b]1[/b]", failed), {}),
        ("tell_start", ("a=[b]1[/b]",), {"attempt": 2}),
        ("tell_end", ("a=[b]1[/b]", completed(2345.6), make_tally()), {"is_best": True}),
        ("tell_end", ("a=2", completed(None), make_tally()), {"is_best": False}),
    ) == [
        "started a=[b]1[/b] on GPU 0,1",
        "trying again: failed (crash) a=[b]1[/b] after 1m01s: Exit code 1 after step 3.",
        "started a=[b]1[/b] (attempt 2)",
        "[2/16] completed a=[b]1[/b] after 2m05s: 2,346 tokens/s/device, the best so far",
        "[2/16] completed a=2 after 2m05s: no figure, too few steps",
    ]


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "dumb"})
    assert say(("tell_start", ("a",), {}), console=console) == ["started a"]


def test_a_long_job_has_a_plain_line_a_minute() -> None:
    shown = [glance(step=second, elapsed_s=float(second)) for second in range(0, 200, 7)]
    update = {"num_waiting": 0, "num_slots": 1}
    lines = say(
        ("tell_start", ("remat_policy=full",), {}),
        *(("update", ([each], make_tally()), update) for each in shown),
    )
    assert lines == [
        "started remat_policy=full",
        "remat_policy=full: step 64/100  loss 3.210  2,000 tok/s/dev  1m03s  ETA 45s",
        "remat_policy=full: step 127/100  loss 3.210  2,000 tok/s/dev  2m06s  ETA 45s",
        "remat_policy=full: step 190/100  loss 3.210  2,000 tok/s/dev  3m09s  ETA 45s",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_that_goes_away_does_not_stop_a_sweep(terminal: bool) -> None:
    file = io.StringIO()
    with SweepView(Voice(Console(file=file, force_terminal=terminal))) as view:
        file.close()
        view.tell_start("a")
        view.update([glance(elapsed_s=100.0)], make_tally(), num_waiting=1, num_slots=1)
        view.tell_end("a", completed(1.0), make_tally(), is_best=True)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("figure", [math.nan, math.inf, 1e308, 5e-324])
def test_a_display_forgives_every_figure(figure: float, terminal: bool) -> None:
    step = StepRecord(
        step=10**300,
        step_time_s=figure,
        loss=figure,
        tokens_per_device=figure,
        tflops_per_device=figure,
        total_weights=1.0,
    )
    file = io.StringIO()
    with SweepView(Voice(Console(file=file, width=120, force_terminal=terminal))) as view:
        odd = glance("odd", step=None, rest_s=figure)
        view.update([replace(odd, latest=step), odd], make_tally(), num_waiting=1, num_slots=1)
    assert ("2/16 done" if terminal else "odd: step 1000000") in file.getvalue()


def test_a_console_that_cannot_spell_a_name_shows_it_escaped() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii", write_through=True), force_terminal=True, width=120)
    with SweepView(Voice(console)) as view:
        view.update([glance("name=λ")], make_tally(), num_waiting=1, num_slots=1)
        view.say("λ too")
    assert b"name=\\u03bb  step 10/100" in raw.getvalue()
    assert b"\\u03bb too" in raw.getvalue()


def test_a_real_terminal_gets_live_lines_and_its_cursor_back(tmp_path: Path) -> None:
    folders = [plan_stub_run(tmp_path / name, "step_s=0.05", steps=40) for name in ("a", "b")]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    program = Path(__file__).parent / "children" / "run_jobs.py"
    process = subprocess.Popen(
        [sys.executable, str(program), "2", "0", *(str(folder.path) for folder in folders)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 1 << 16):
            shown += data
    except OSError:  # how the end of a terminal is told
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "2 running" in text
    assert "/40  loss 9." in text
    assert "[2/2] completed " in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
