"""What sweep.json keeps of a command, and what can be wrong with it later."""

import json
from pathlib import Path

import pytest

from primus_hydra.errors import ConfigError
from primus_hydra.sweep.resume import record_command, recorded_arguments, resume_command, write_sweep_record


def test_a_command_comes_back_with_the_folder_it_was_given(tmp_path: Path) -> None:
    typed = ["--multirun", "steps=8", "remat_policy=full,minimal", "+sweep.dir=elsewhere"]
    record_command(typed, tmp_path)
    (tmp_path / "s").mkdir()
    write_sweep_record(tmp_path / "s")
    arguments, cwd = recorded_arguments(tmp_path / "s")
    assert arguments == [*typed[:-1], f"sweep.dir={tmp_path / 's'}"]
    assert cwd == tmp_path


def test_a_folder_that_was_moved_is_taken_up_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    record_command(["--multirun", "steps=8,9"], tmp_path)
    write_sweep_record(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    assert recorded_arguments(tmp_path / "new")[0][-1] == f"sweep.dir={tmp_path / 'new'}"


def test_a_later_start_keeps_the_time_of_the_first(tmp_path: Path) -> None:
    record_command(["--multirun", "steps=8,9"], tmp_path)
    write_sweep_record(tmp_path)
    file = tmp_path / "sweep.json"
    first = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(first | {"started_at": "2020-01-01T00:00:00+00:00"}), encoding="utf-8")
    record_command(["--multirun", "steps=8,9", "sweep.max_parallel=2"], tmp_path)
    write_sweep_record(tmp_path)
    second = json.loads(file.read_text(encoding="utf-8"))
    assert second["started_at"] == "2020-01-01T00:00:00+00:00"
    assert "sweep.max_parallel=2" in second["arguments"]
    assert second["versions"].keys() >= {"primus_hydra", "maxtext", "hydra"}


def test_a_secret_of_the_environment_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "SENTINEL-0123456789")
    record_command(["--multirun", "steps=8,9", "platform.env.NOTE=SENTINEL-0123456789"], tmp_path)
    write_sweep_record(tmp_path)
    assert "SENTINEL" not in (tmp_path / "sweep.json").read_text(encoding="utf-8")


def test_a_folder_without_a_record_is_no_sweep_and_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    record_command(["--multirun", "steps=8,9"], tmp_path)
    write_sweep_record(tmp_path / "inside")
    with pytest.raises(ConfigError, match=r"is not a sweep folder") as caught:
        recorded_arguments(tmp_path)
    assert str(tmp_path / "inside") in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"arguments": ["steps', "not valid JSON"),
        ('{"arguments": [], "cwd": "/"}', "arguments is \\[\\]"),
        ('{"arguments": [1], "cwd": "/"}', "arguments is \\[1\\]"),
        ('{"arguments": ["steps=8"], "cwd": "/does/not/exist"}', "/does/not/exist, does not exist any more"),
        ('{"arguments": ["steps=8"]}', "does not exist any more"),
    ],
)
def test_a_damaged_record_is_told(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "sweep.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        recorded_arguments(tmp_path)


def test_what_to_type_is_safe_for_a_shell() -> None:
    assert resume_command(Path("/a b/s")).endswith(" -m primus_hydra 'sweep.resume=/a b/s'")
