"""The script of the charts is made once, and again where what was kept is damaged or cannot be kept."""

from pathlib import Path

import pytest

from primus_hydra.report.bundle import load_bundle


def test_a_damaged_copy_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = load_bundle()
    (kept,) = (tmp_path / "primus_hydra").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    assert load_bundle() == script
    assert kept.read_bytes() == whole
    assert load_bundle() == script
    assert [file.name for file in (tmp_path / "primus_hydra").iterdir()] == [kept.name]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "vegaEmbed" in load_bundle()
