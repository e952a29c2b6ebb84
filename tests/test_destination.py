"""primus_hydra.destination: nothing of another run is ever touched."""

from pathlib import Path
from typing import Any

from primus_hydra.destination import MARKER, check_checkpoints, check_run_folder, checkpoint_owner, mark_checkpoints
from primus_hydra.runs import RunFolder, write_json_atomic

KEYS: dict[str, Any] = {"steps": 5, "quantization": "", "run_name": "r", "enable_checkpointing": True}


def _record(keys: dict[str, Any]) -> dict[str, Any]:
    return {"composed": {key: {"value": value, "origin": "test"} for key, value in keys.items()}}


def test_a_new_folder_and_an_empty_one_are_free(tmp_path: Path) -> None:
    assert check_run_folder(RunFolder(tmp_path / "new" / "deep"), KEYS) == []
    assert check_run_folder(RunFolder(tmp_path), KEYS) == []


def test_a_file_or_a_folder_of_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert "is not a run folder" in check_run_folder(RunFolder(tmp_path), KEYS)[0].what
    assert "is a file" in check_run_folder(RunFolder(tmp_path / "notes.txt"), KEYS)[0].what


def test_the_same_configuration_may_run_again_and_longer(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(_record(KEYS))
    assert check_run_folder(folder, KEYS) == []
    assert check_run_folder(folder, {**KEYS, "steps": 10}) == []


def test_another_configuration_is_refused_with_the_differing_keys(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(_record(KEYS))
    found = check_run_folder(folder, {**KEYS, "quantization": "int8"})
    assert "quantization: '' there, 'int8' now" in found[0].what


def test_a_half_written_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"composed": {"st', encoding="utf-8")
    assert "unreadable record" in check_run_folder(RunFolder(tmp_path), KEYS)[0].what


def test_checkpoints_of_another_configuration_are_refused(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    mark_checkpoints(keys, _record(keys))
    assert check_checkpoints({**keys, "steps": 10}, frozenset()) == []
    assert (
        "belongs to another configuration" in check_checkpoints({**keys, "quantization": "int8"}, frozenset())[0].what
    )


def test_checkpoints_of_unknown_origin_need_a_word(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    (refused,) = check_checkpoints(keys, frozenset())
    assert (refused.severity, refused.rule) == ("refuse", "unknown_checkpoint")
    (warned,) = check_checkpoints(keys, frozenset({"unknown_checkpoint"}))
    assert warned.severity == "warn"


def test_remote_and_switched_off_checkpoints_are_not_looked_into(tmp_path: Path) -> None:
    assert checkpoint_owner({**KEYS, "base_output_directory": "gs://b/x"}) is None
    assert checkpoint_owner({**KEYS, "base_output_directory": str(tmp_path), "enable_checkpointing": False}) is None


def test_a_damaged_marker_is_refused(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    write_json_atomic(tmp_path / "r" / MARKER, {"something": 1})
    assert "unreadable record" in check_checkpoints(keys, frozenset())[0].what
