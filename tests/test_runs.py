"""The run folder: its record, its attempts, its lock."""

from pathlib import Path

import pytest

from primus_hydra.runs import RecordError, RunFolder, RunFolderError, RunLockedError


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record({"state": "planned", "text": "λ"})
    assert folder.read_record() == {"state": "planned", "text": "λ"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


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
        for path in (folder.train_log, folder.metrics_jsonl, folder.path / "metrics.3.jsonl", folder.child_json):
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
    folder.keep_record()
    assert folder.count_attempts() == 0
    folder.write_record({"attempt": 2, "state": "failed"})
    folder.keep_record()
    assert folder.count_attempts() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.json.2"]


@pytest.mark.parametrize("state", ["planning", "planned"])
def test_a_plan_that_was_never_executed_displaces_no_kept_record(tmp_path: Path, state: str) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record({"attempt": 1, "state": "completed"})
    folder.keep_record()
    folder.write_record({"attempt": 1, "state": state})
    folder.keep_record()
    assert '"completed"' in folder.record_of_attempt(1).read_text()


def test_only_half_written_files_are_removed(tmp_path: Path) -> None:
    names = {".run.json.0123abcd.tmp": False, ".notes.tmp": True, "x.0123abcd.tmp": True, "run.json": True}
    for name in names:
        (tmp_path / name).touch()
    RunFolder(tmp_path).remove_half_written()
    assert {name: (tmp_path / name).exists() for name in names} == names


def test_the_lock_excludes_others_until_it_is_let_go(tmp_path: Path) -> None:
    with RunFolder(tmp_path).locked(), pytest.raises(RunLockedError), RunFolder(tmp_path).locked():
        pass
    with RunFolder(tmp_path).locked():
        pass


def test_a_folder_that_does_not_exist_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="There is no run folder"), RunFolder(tmp_path / "nowhere").locked():
        pass
