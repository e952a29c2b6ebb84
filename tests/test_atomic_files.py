"""primus_hydra.atomic_files: whole or not at all, whenever the program stops."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from primus_hydra.atomic_files import list_half_written, write_atomic, write_in_order, write_json_atomic


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    write_json_atomic(tmp_path / "x.json", {"a": math.nan, "b": [math.inf, (1.0,)], "c": {"d": -math.inf}})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [None, [1.0]], "c": {"d": None}}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_atomic(tmp_path / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(tmp_path / "x", "\ud800")
    assert (tmp_path / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_written_file_has_the_users_usual_permissions(tmp_path: Path) -> None:
    write_atomic(tmp_path / "x", "new")
    (tmp_path / "y").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


def test_where_there_is_no_room_for_all_files_none_is_touched(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    too_much = [(tmp_path / "a", "new"), (tmp_path / "b" / "c", "x" * 10_000), (tmp_path / "a", "newer")]
    code = """
import sys, resource
from pathlib import Path
from primus_hydra.atomic_files import write_in_order
resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
root = Path(sys.argv[1])
write_in_order([(root / "a", "new"), (root / "b" / "c", "x" * 10_000), (root / "a", "newer")], staging=root)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    write_in_order(too_much, staging=tmp_path)
    assert (tmp_path / "a").read_text() == "newer"
    assert len((tmp_path / "b" / "c").read_text()) == 10_000


def test_what_a_killed_writer_left_is_recognised(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from primus_hydra.atomic_files import write_atomic
sys.addaudithook(lambda event, _: event == "os.rename" and os.kill(os.getpid(), signal.SIGKILL))
write_atomic(Path(sys.argv[1]) / "run.json", "{}")
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    assert list(list_half_written(tmp_path)) == [left]
