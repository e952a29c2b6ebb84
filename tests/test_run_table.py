"""The table at the end of a run."""

import io
from typing import Any

from rich.console import Console

from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.report.run_table import run_table
from primus_hydra.results import compute_result


def make_record(num_steps: int = 48, **changes: Any) -> dict[str, Any]:
    steps = [
        StepRecord(
            step=step, step_time_s=0.5, loss=6.0, tokens_per_device=4096.0, tflops_per_device=200.0, total_weights=1.0
        )
        for step in range(num_steps)
    ]
    child = {"jax_platform": "gpu", "device_kind": "AMD Instinct MI300X", "num_devices": 8, "compile_time_s": 42.5}
    return {
        "name": "llama3_8B-0f3a",
        "state": "completed",
        "failure": None,
        "reason": "",
        "last_error_lines": [],
        "resumed_at_step": None,
        "wall_s": 75.0,
        "log": "/somewhere/very/deep/" + "folder/" * 12 + "train.log",
        "result": compute_result(steps, warmup_steps=3, child=child, max_rss_bytes=1 << 30),
        **changes,
    }


def draw(record: dict[str, Any], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(run_table(record))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_completed_run_shows_its_figures_and_how_they_were_taken() -> None:
    shown = " ".join(draw(make_record(), width=200).split())
    for text in (
        "completed",
        "48 (0 to 47)",
        "0.5 s (0.5 to 0.5; median of 45 steps after 3 warm-up steps)",
        "8,192",
        "400",
        "6.0000 -> 6.0000",
        "host 1.00 GiB",
        "gpu, AMD Instinct MI300X, 8 devices",
        "42.5 s",
        "1m15s",
    ):
        assert text in shown


def test_too_few_steps_are_said_instead_of_a_number() -> None:
    shown = draw(make_record(num_steps=4), width=200)
    assert "too few steps (1 step after 3 warm-up steps)" in shown
    assert "8,192" not in shown


def test_a_failed_run_shows_reason_error_lines_and_log() -> None:
    shown = draw(
        make_record(
            0, state="failed", failure="out_of_memory", reason="Out of memory.", last_error_lines=["E1 [/bold] x"]
        )
    )
    assert "failed (out of memory)" in shown
    assert "llama3_8B-0f3a: Out of memory." in shown
    assert "E1 [/bold] x" in shown
    assert "whole log: /somewhere" in " ".join(shown.split())


def test_nothing_is_wider_than_80_columns_and_no_path_is_lost() -> None:
    record = make_record(state="failed", failure="crash", reason="x" * 200, last_error_lines=["y" * 290])
    assert max(map(len, draw(record).splitlines())) <= 80
    table = draw(record).replace("\n", "").replace(" ", "").replace("│", "")
    assert record["log"] in table


def test_nothing_that_steers_a_terminal_reaches_it() -> None:
    evil = "a\x1b[2J\x07b\u202ec"
    record = make_record(name=evil, state="failed", failure="crash", reason=evil, last_error_lines=[evil], log=evil)
    shown = draw(record)
    assert {letter for letter in shown if not letter.isprintable()} == {"\n"}
    assert "a\\x1b[2J" in shown
