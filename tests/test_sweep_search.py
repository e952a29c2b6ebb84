"""Search with Optuna over run folders, with the stub trainer in MaxText's place."""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunCli
from tests.run_folders import STUB_TRAINER, make_ready_fifo, read_ready
from tests.test_sweep_launch import started

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what SQLAlchemy 1.4 says about its successor
    import optuna
    from optuna.trial import TrialState

pytestmark = pytest.mark.timeout(200)
STUB = f"run.trainer=[{sys.executable},{STUB_TRAINER}]"
SEARCH = ("model=tiny", "platform=cpu", "steps=8", "stderr_sink_level=ERROR", STUB, "hydra/sweeper=optuna")
RANDOM = ("hydra/sweeper/sampler=random", "hydra.sweeper.sampler.seed=3")


def read_study(folder: Path) -> optuna.Study:
    return optuna.load_study(study_name="primus_hydra", storage=f"sqlite:///{folder / 'search.db'}")


def read_records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*/run.json"))]


def test_a_search_tells_optuna_the_score_of_each_run_folder(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    space = ("per_device_batch_size=range(1,3)", 'quantization="",int8')
    done = run_cli("--multirun", *SEARCH, "hydra.sweeper.n_trials=3", *space, f"sweep.dir={folder}")
    assert done.code == 0, done.err
    labels = re.findall(r"^\[(\d/3)\] completed (\d) per_device_batch_size=\d quantization=", done.out, re.MULTILINE)
    assert labels[0] == ("1/3", "0")
    assert all(position == f"{int(trial) + 1}/3" for position, trial in labels)
    study = read_study(folder)
    assert study.direction.name == "MAXIMIZE"
    records = read_records(folder)
    scores = [record["result"]["tokens_per_second_per_device"] for record in records if record["repeat"] == 1]
    assert set(study.get_trials()[0].params) == {"++per_device_batch_size", "++quantization"}
    assert {trial.value for trial in study.get_trials()} == set(scores)
    tried = {int(record["composed"]["per_device_batch_size"]["value"]) for record in records}
    assert tried <= {1, 2}, "range(1,3) ends before 3, as everywhere in Hydra"


@pytest.mark.slow
def test_a_trial_without_a_score_is_told_as_failed_and_the_search_goes_on(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    space = ("platform.env.STUB=step_s=0.001,fail_at=2", "quantization=int8,nanoo_fp8", "gradient_accumulation_steps=4")
    done = run_cli("--multirun", *SEARCH, *RANDOM, "hydra.sweeper.n_trials=6", *space, f"sweep.dir={folder}")
    assert done.code == 1
    trials = read_study(folder).get_trials()
    assert len(trials) == 6
    for trial in trials:
        works = "fail_at" not in trial.params["++platform.env.STUB"] and trial.params["++quantization"] == "int8"
        assert trial.state == (TrialState.COMPLETE if works else TrialState.FAIL)
        assert (trial.value is not None) == works
    assert {trial.state for trial in trials} == {TrialState.COMPLETE, TrialState.FAIL}


@pytest.mark.slow
def test_a_grid_in_a_file_is_not_ignored_by_a_search(run_cli: RunCli, tmp_path: Path) -> None:
    wrong = ("hydra.sweeper.n_trials=0", "sweep=batch_and_length")
    done = run_cli("--multirun", *SEARCH, *wrong, f"sweep.dir={tmp_path / 's'}")
    assert done.code == 2
    assert "n_trials=0 is no number of trials" in done.err
    assert "sweep.zip would be ignored" in done.err


@pytest.mark.slow
def test_a_search_that_is_refused_leaves_no_study(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    done = run_cli("--multirun", *SEARCH, "remat_policy=fulll,minimall", f"sweep.dir={folder}")
    assert done.code == 2
    assert not list(folder.glob("search.db"))


@pytest.mark.slow
def test_a_second_search_in_the_same_folder_is_refused_before_it_touches_the_study(
    run_cli: RunCli, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    ready = make_ready_fifo(tmp_path / "ready")
    command = ["--multirun", *SEARCH, "hydra.sweeper.n_trials=1", "learning_rate=interval(0.001,0.1)"]
    command += [f"sweep.dir={folder}", "platform.env.STUB=hang_at=3"]
    with started(tmp_path, *command, env=ready):
        read_ready(ready)
        second = run_cli(*command)
        assert second.code == 2
        assert [trial.state for trial in read_study(folder).get_trials()] == [TrialState.RUNNING]


@pytest.mark.slow
def test_a_search_in_which_every_trial_fails_ends_with_its_table(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    fails = ("platform.env.STUB=fail_at=1", "per_device_batch_size=1,2")
    done = run_cli("--multirun", *SEARCH, "hydra.sweeper.n_trials=2", *fails, f"sweep.dir={folder}")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert {record["state"] for record in read_records(folder)} == {"failed"}


@pytest.mark.slow
def test_two_objectives_are_searched_at_once(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    objectives = "sweep.objective=[tokens_per_second_per_device,peak_host_memory_gib]"
    command = ("--multirun", *SEARCH, objectives, "hydra.sweeper.n_trials=3", "per_device_batch_size=range(1,5)")
    done = run_cli(*command, f"sweep.dir={folder}")
    assert done.code == 0, done.err
    study = read_study(folder)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert all(len(trial.values) == 2 for trial in study.get_trials())
    other = run_cli(*(text for text in command if text != objectives), f"sweep.dir={folder}")
    assert other.code == 2
    assert "other objectives" in other.err


@pytest.mark.slow
def test_the_same_command_runs_only_what_is_missing_of_a_study(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    command = ("--multirun", *SEARCH, "learning_rate=interval(0.001,0.1)", f"sweep.dir={folder}")
    assert run_cli(*command, "hydra.sweeper.n_trials=2").code == 0
    before = {file: file.read_bytes() for file in folder.glob("*/run.json")}
    again = run_cli(*command, "hydra.sweeper.n_trials=2")
    assert again.code == 0
    assert "2 of 2 trials are told already" in again.out
    assert "Ranked by tokens/s/device" in " ".join(again.out.split())
    assert {file: file.read_bytes() for file in folder.glob("*/run.json")} == before
    more = run_cli(*command, "hydra.sweeper.n_trials=3")
    assert more.code == 0
    assert sorted(file.parent.name[:4] for file in folder.glob("*/run.json")) == ["0000", "0001", "0002"]
    changed = run_cli("--multirun", *SEARCH, "learning_rate=0.1,0.2", f"sweep.dir={folder}", "hydra.sweeper.n_trials=4")
    assert changed.code == 2
    assert "take another sweep.dir" in changed.err


@pytest.mark.slow
def test_the_trial_in_flight_when_the_search_was_killed_is_taken_up_in_its_own_folder(
    run_cli: RunCli, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    ready = make_ready_fifo(tmp_path / "ready")
    command = ["--multirun", *SEARCH, "hydra.sweeper.n_trials=1", "learning_rate=interval(0.001,0.1)"]
    command += [f"sweep.dir={folder}", "platform.env.STUB=hang_once=3"]
    with started(tmp_path, *command, env=ready) as process:
        word, _ = read_ready(ready)
        assert word == "hanging"
        process.kill()
        process.wait()
    (first,) = folder.glob("*/run.json")
    in_flight = read_study(folder).get_trials()[0]
    assert in_flight.state == TrialState.RUNNING
    done = run_cli(*command)
    assert done.code == 0, done.err
    assert json.loads(first.read_text(encoding="utf-8"))["state"] == "completed"
    assert len(read_records(folder)) == 1
    interrupted, again = read_study(folder).get_trials()
    assert (interrupted.state, again.state) == (TrialState.FAIL, TrialState.COMPLETE)
    assert again.params == in_flight.params
