"""The run folder: atomic files, attempts, identity, abandoned runs."""

import json
import math
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from primus_hydra.maxtext.keys import load_keys
from primus_hydra.runs import (
    IDENTITY_FREE_KEYS,
    NOT_SET,
    RecordError,
    RunFolder,
    RunFolderError,
    RunLockedError,
    config_differences,
    fingerprint,
    is_abandoned,
    this_worker,
    write_json_atomic,
    write_text_atomic,
)

CONFIG = {"steps": 10, "remat_policy": "full", "run_name": "a", "base_output_directory": "/x"}


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record({"state": "planned", "text": "λ"})
    assert folder.read_record() == {"state": "planned", "text": "λ"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    write_json_atomic(tmp_path / "x.json", {"a": math.nan, "b": [math.inf, (1.0,)], "c": {"d": -math.inf}})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [None, [1.0]], "c": {"d": None}}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text_atomic(tmp_path / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text_atomic(tmp_path / "x", "\ud800")
    assert (tmp_path / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_written_file_has_the_users_usual_permissions(tmp_path: Path) -> None:
    write_text_atomic(tmp_path / "x", "new")
    (tmp_path / "y").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


@pytest.mark.parametrize(
    ("text", "message"), [(None, "does not exist"), ('{"a": 1', "half-written"), ("[]", "a list where a JSON object")]
)
def test_a_record_that_cannot_be_read_is_a_clear_error(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(RecordError, match=message):
        RunFolder(tmp_path).read_record()


def test_an_earlier_attempt_is_moved_away_and_never_overwritten(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for content in ("first", "second"):
        for path in (folder.train_log, folder.metrics_jsonl, folder.metrics_of_rank(3), folder.child_json):
            path.write_text(content)
        folder.rotate_attempt(1)
    assert folder.train_log.with_name("train.log.1").read_text() == "first"
    assert (tmp_path / "train.log.2").read_text() == "second"
    assert (tmp_path / "metrics.3.jsonl.1").read_text() == "first"
    assert not any(path.exists() for path in (folder.train_log, folder.metrics_jsonl, folder.child_json))
    folder.rotate_attempt(2)


@pytest.mark.parametrize("attempt", ["x", None, -1, 1.5, True, []])
def test_a_record_that_does_not_count_its_attempts_is_not_moved(tmp_path: Path, attempt: object) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record({"attempt": attempt})
    with pytest.raises(RecordError, match="attempt is"):
        folder.keep_record()
    assert folder.run_json.exists()


def test_the_record_of_an_earlier_attempt_is_kept(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.keep_record() == 0
    folder.write_record({"attempt": 2})
    assert folder.keep_record() == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.json.2"]


def test_the_lock_excludes_others_until_it_is_let_go(tmp_path: Path) -> None:
    with RunFolder(tmp_path).locked(), pytest.raises(RunLockedError), RunFolder(tmp_path).locked():
        pass
    with RunFolder(tmp_path).locked():
        pass


def test_a_folder_that_does_not_exist_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="There is no run folder"), RunFolder(tmp_path / "nowhere").locked():
        pass


def test_the_fingerprint_ignores_places_and_names_and_order() -> None:
    moved = dict(reversed(list((CONFIG | {"run_name": "b", "metrics_file": "/y", "log_period": 1}).items())))
    assert fingerprint(moved) == fingerprint(CONFIG)
    assert len(fingerprint(CONFIG)) == 64


@pytest.mark.parametrize("change", [{"steps": 11}, {"steps": "10"}, {"remat_policy": None}, {"packing": True}])
def test_the_fingerprint_sees_every_other_change(change: dict[str, Any]) -> None:
    assert fingerprint(CONFIG | change) != fingerprint(CONFIG)
    assert config_differences(CONFIG, CONFIG | change).keys() == change.keys()


@pytest.mark.parametrize("value", [math.nan, {1, 2}, object()])
def test_what_cannot_be_spelt_the_same_way_twice_has_no_fingerprint(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        fingerprint({"steps": value})


def test_differences_name_both_values() -> None:
    assert config_differences(CONFIG, {"steps": 20, "run_name": "b", "packing": False}) == {
        "steps": (10, 20),
        "remat_policy": ("full", NOT_SET),
        "packing": (NOT_SET, False),
    }


def test_every_identity_free_key_is_a_key_of_maxtext() -> None:
    assert IDENTITY_FREE_KEYS - load_keys().keys() == set()


def test_a_run_of_a_living_worker_is_not_abandoned() -> None:
    assert not is_abandoned({"state": "running", "worker": this_worker()})


@pytest.mark.parametrize("state", ["planned", "completed", "failed"])
def test_only_a_running_record_can_be_abandoned(state: str) -> None:
    assert not is_abandoned({"state": state})


def test_a_run_is_abandoned_when_its_worker_is_gone() -> None:
    worker = this_worker()
    unused = next(pid for pid in range(2, 1 << 22) if not psutil.pid_exists(pid))
    for change in ({"pid": unused}, {"started": worker["started"] - 100}, {"boot_id": "another boot"}):
        assert is_abandoned({"state": "running", "worker": worker | change})
    assert is_abandoned({"state": "running"})


@pytest.mark.parametrize("change", [{"pid": "x"}, {"pid": -1}, {"pid": None}, {"started": "x"}])
def test_a_damaged_record_of_a_worker_names_nobody(change: dict[str, Any]) -> None:
    assert is_abandoned({"state": "running", "worker": this_worker() | change})
    assert is_abandoned({"state": "running", "worker": {}})


def test_a_worker_on_another_host_is_left_to_the_lock() -> None:
    assert not is_abandoned({"state": "running", "worker": this_worker() | {"host": "elsewhere", "pid": os.getpid()}})
