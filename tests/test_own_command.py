"""Commands of ours, as a person can type them."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from primus_hydra.own_command import normalise, own_command


def test_python_is_named_plainly_where_it_is_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert own_command("primus_hydra", "a b") == "python -m primus_hydra 'a b'"


@pytest.mark.parametrize("has_other", [True, False])
def test_the_command_works_where_python_is_another_one_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_other: bool
) -> None:
    if has_other:
        # A virtual environment's python is a link to the one it was made from: the same file, other packages.
        (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    command = own_command("primus_hydra.report", "--help")
    assert command == f"{shlex.quote(sys.executable)} -m primus_hydra.report --help"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("usage:")) == (0, True)


def test_a_path_has_no_steps_back_and_keeps_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inner")
    monkeypatch.chdir(tmp_path)
    assert normalise(Path("link")) == tmp_path / "link"
    assert normalise(Path("link/..")) == (tmp_path / "real").resolve()
    assert normalise(Path("nowhere/../real")) == (tmp_path / "real").resolve()
