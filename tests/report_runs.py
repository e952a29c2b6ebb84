"""Runs for the tests of reports: as plain data, as records on disk, and as files that MaxText alone would leave."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from primus_hydra.objective import OBJECTIVES, Objective
from primus_hydra.report.model import Report, Run
from primus_hydra.report.rows import make_rows

TOKENS = OBJECTIVES["tokens_per_second_per_device"]


def make_result(tokens: float | None = 1000.0, *, spread: float = 0.01, **changes: Any) -> dict[str, Any]:
    """Figures of a run of 1 s a step whose middle half is `spread` wide on either side."""
    return {
        "first_step": 0,
        "last_step": 7,
        "num_steps": 8,
        "warmup_steps": 3,
        "num_steps_measured": 5,
        "too_few_steps": False,
        "step_time_s": {"median": 1.0, "p25": 1.0 - spread, "p75": 1.0 + spread, "min": 0.5, "max": 2.0},
        "tokens_per_second_per_device": tokens,
        "tflops_per_second_per_device": 2.0,
        "first_loss": 9.0,
        "final_loss": 4.0,
        "peak_device_memory_gib": 100.0,
        "peak_host_memory_gib": 3.0,
        "compile_time_s": 12.0,
        "platform": "gpu",
        "device_kind": "MI300X",
        "num_devices": 8,
        **changes,
    }


def make_run(name: str, tokens: float | None = 1000.0, *, repeat: int = 1, spread: float = 0.01, **changes: Any) -> Run:
    """A completed run; figures inside its result by their own names."""
    figures = {key: changes.pop(key) for key in make_result() if key in changes}
    values = {
        "name": name if repeat == 1 else f"{name}-repeat{repeat}",
        "folder": Path("/sweeps/one") / name,
        "sweep": "one",
        "point": name,
        "repeat": repeat,
        "differs": name,
        "overrides": (),
        "state": "completed",
        "failure": None,
        "reason": "Reached its last step, 7.",
        "composed": {},
        "environment": {},
        "trainer": (),
        "versions": {},
        "result": make_result(tokens, spread=spread, **figures),
        "command": "",
        "step_files": (),
    }
    return Run(**{**values, **changes})


def make_report(*runs: Run, objective: Objective = TOKENS) -> Report:
    """A report as `read_report` makes it."""
    return Report(
        folders=(Path("/sweeps/one"),), objective=objective, rows=make_rows(runs, objective), runs=tuple(runs)
    )


def write_run(sweep: Path, name: str, tokens: float | None = 1000.0, **changes: Any) -> Path:
    """A run folder with a record as the worker writes it; figures inside `result` by their own names."""
    figures = make_result(tokens, **{key: changes.pop(key) for key in make_result() if key in changes})
    record = {"state": "completed", "failure": None, "reason": "", "overrides": [f"remat_policy={name}", "steps=8"]}
    folder = sweep / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(record | {"result": figures} | changes), encoding="utf-8")
    return folder


def log_line(step: int, seconds: float, loss: float | str = 5.0, tokens: float = 1000.0) -> str:
    """One line as MaxText logs it; `tokens` are those of one device in one step."""
    return (
        f"I1201 10:00:00.000000 1400 metric_logger.py:210] completed step: {step}, seconds: {seconds:.3f}, "
        f"TFLOP/s/device: 2.000, Tokens/s/device: {tokens / seconds:.3f}, total_weights: 128, loss: {loss}\n"
    )


def metrics_line(step: int, seconds: float, loss: float = 5.0, tokens: float = 1000.0) -> str:
    """One line as MaxText writes it into its metrics file."""
    figures = {"learning/loss": loss, "learning/total_weights": 128.0, "perf/step_time_seconds": seconds}
    figures |= {"perf/per_device_tflops": 2.0, "perf/per_device_tokens": tokens, "step": float(step)}
    return json.dumps(figures) + "\n"


def write_log(file: Path, times: Sequence[float], *, head: str = "", tail: str = "", first: int = 0) -> None:
    """A log with a step for every time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [log_line(first + index, seconds) for index, seconds in enumerate(times)]
    file.write_text(f"{head}{''.join(lines)}{tail}", encoding="utf-8")
