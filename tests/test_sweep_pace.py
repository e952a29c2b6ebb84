"""How a running attempt is seen from outside."""

import json
import os
from pathlib import Path

from primus_hydra.liveness import this_worker
from primus_hydra.runs import RunFolder
from primus_hydra.sweep.pace import Pace
from tests.run_folders import plan_stub_run


def begin(folder: RunFolder) -> None:
    """Write what a worker writes when it begins; the worker is this process."""
    folder.write_record({**folder.read_record(), "state": "running", "worker": this_worker()})


def add_steps(folder: RunFolder, steps: range, step_time_s: float = 0.5) -> None:
    with folder.metrics_jsonl.open("a", encoding="utf-8") as stream:
        for step in steps:
            line = {
                "learning/loss": 5.0,
                "perf/step_time_seconds": 9.0 if step < 3 else step_time_s,
                "perf/per_device_tokens": 1000.0,
                "step": float(step),
            }
            stream.write(json.dumps(line) + "\n")


def test_figures_and_time_left_leave_the_warm_up_out(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", steps=20)
    pace = Pace(folder, os.getpid())
    begin(folder)
    add_steps(folder, range(3))
    assert pace.look()
    assert (pace.rest_s(), pace.result()["num_steps_measured"]) == (None, 0)
    add_steps(folder, range(3, 10))
    assert pace.look()
    assert pace.rest_s() == 5.0
    assert pace.result()["num_steps_measured"] == 7
    assert pace.result()["tokens_per_second_per_device"] == 2000.0
    assert not pace.look()


def test_what_an_earlier_attempt_left_is_not_taken_for_this_one(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", steps=20)
    add_steps(folder, range(10))
    begin(folder)
    pace = Pace(folder, os.getpid() + 1)
    assert not pace.look()
    assert (pace.latest, pace.total_steps, pace.rest_s()) == (None, None, None)


def test_a_folder_without_a_readable_record_is_forgiven(tmp_path: Path) -> None:
    assert not Pace(RunFolder(tmp_path), os.getpid()).look()


def test_a_long_run_keeps_only_its_last_steps(tmp_path: Path) -> None:
    folder = plan_stub_run(tmp_path / "a", steps=5000)
    pace = Pace(folder, os.getpid())
    begin(folder)
    add_steps(folder, range(1000), 0.5)
    add_steps(folder, range(1000, 3000), 0.25)
    pace.look()
    assert pace.result()["num_steps_measured"] == 1000
    assert pace.result()["tokens_per_second_per_device"] == 4000.0
    assert pace.rest_s() == 500.0
