"""primus_hydra.destination: nothing of another run is ever touched."""

from pathlib import Path
from typing import Any

from primus_hydra.atomic_files import write_json_atomic
from primus_hydra.destination import MARKER, check_checkpoints, check_run_folder, checkpoint_owner, mark_checkpoints
from primus_hydra.identity import Identity, identify
from primus_hydra.runs import RunFolder

KEYS: dict[str, Any] = {"steps": 5, "quantization": "", "run_name": "r", "enable_checkpointing": True}


def _identity(keys: dict[str, Any] = KEYS, **env: str) -> Identity:
    return identify(keys, env, None)


def _record(keys: dict[str, Any] = KEYS, **env: str) -> dict[str, Any]:
    return {"identity": _identity(keys, **env)}


def test_a_new_folder_and_an_empty_one_are_free(tmp_path: Path) -> None:
    assert check_run_folder(RunFolder(tmp_path / "new" / "deep"), _identity()) == []
    assert check_run_folder(RunFolder(tmp_path), _identity()) == []


def test_a_file_or_a_folder_of_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert "is not a run folder" in check_run_folder(RunFolder(tmp_path), _identity())[0].what
    assert "is a file" in check_run_folder(RunFolder(tmp_path / "notes.txt"), _identity())[0].what


def test_the_same_configuration_may_run_again_and_longer(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(_record())
    assert check_run_folder(folder, _identity()) == []
    assert check_run_folder(folder, _identity({**KEYS, "steps": 10})) == []


def test_another_configuration_is_refused_with_the_differing_keys(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(_record())
    found = check_run_folder(folder, _identity({**KEYS, "quantization": "int8"}))
    assert "quantization: '' there, 'int8' now" in found[0].what


def test_another_environment_is_refused_with_both_values(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(_record(NVTE_FUSED_ATTN="1", XLA_FLAGS="--xla_a=1"))
    (found,) = check_run_folder(folder, _identity(NVTE_FUSED_ATTN="0", XLA_FLAGS="--xla_a=2"))
    assert "platform.env.NVTE_FUSED_ATTN: '1' there, '0' now" in found.what
    assert "platform.xla_flags.xla_a: '1' there, '2' now" in found.what


def test_what_a_killed_writer_left_belongs_to_nobody(tmp_path: Path) -> None:
    (tmp_path / ".run.json.0123abcd.tmp").write_text('{"sta', encoding="utf-8")
    (tmp_path / ".lock").touch()
    assert check_run_folder(RunFolder(tmp_path), _identity()) == []


def test_a_half_written_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"composed": {"st', encoding="utf-8")
    assert "unreadable record" in check_run_folder(RunFolder(tmp_path), _identity())[0].what


def test_checkpoints_of_another_configuration_are_refused(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    mark_checkpoints(keys, _record(keys))
    assert check_checkpoints(keys, _identity({**keys, "steps": 10}), frozenset()) == []
    other = _identity({**keys, "quantization": "int8"})
    assert "belongs to another configuration" in check_checkpoints(keys, other, frozenset())[0].what


def test_a_training_goes_on_under_another_environment(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    mark_checkpoints(keys, _record(keys))
    assert check_checkpoints(keys, _identity(keys, NVTE_FUSED_ATTN="0"), frozenset()) == []


def test_checkpoints_of_unknown_origin_need_a_word(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    (refused,) = check_checkpoints(keys, _identity(keys), frozenset())
    assert (refused.severity, refused.rule) == ("refuse", "unknown_checkpoint")
    (warned,) = check_checkpoints(keys, _identity(keys), frozenset({"unknown_checkpoint"}))
    assert warned.severity == "warn"


def test_remote_and_switched_off_checkpoints_are_not_looked_into(tmp_path: Path) -> None:
    assert checkpoint_owner({**KEYS, "base_output_directory": "gs://b/x"}) is None
    assert checkpoint_owner({**KEYS, "base_output_directory": str(tmp_path), "enable_checkpointing": False}) is None


def test_a_damaged_marker_is_refused(tmp_path: Path) -> None:
    keys = {**KEYS, "base_output_directory": str(tmp_path)}
    (tmp_path / "r" / "checkpoints" / "3").mkdir(parents=True)
    write_json_atomic(tmp_path / "r" / MARKER, {"something": 1})
    assert "unreadable record" in check_checkpoints(keys, _identity(keys), frozenset())[0].what
