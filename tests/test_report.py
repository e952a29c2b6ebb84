"""`python -m primus_hydra.report`: what a person gets for the folders that he names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from primus_hydra.report.__main__ import main
from tests.report_runs import write_log, write_run

REPOSITORY = Path(__file__).parent.parent


def report(*arguments: object, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "primus_hydra.report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_the_table_is_shown_and_the_files_lie_in_the_first_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a", "full")
    write_run(tmp_path / "b", "minimal", 2000)
    assert main([str(tmp_path / "a"), str(tmp_path / "b"), "--no-page"]) == 0
    assert "best: remat_policy=minimal" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "a").glob("*.*")} == {"results.csv", "results.json", "results.parquet"}
    assert list((tmp_path / "b").glob("*.*")) == []


def test_the_page_is_written_unless_it_is_not_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a", "full")
    assert main([str(tmp_path / "a")]) == 0
    page = tmp_path / "a" / "report.html"
    assert f"Page: {page}" in capsys.readouterr().out.replace("\n", "")
    assert "<html" in page.read_text(encoding="utf-8")


def test_the_files_go_where_they_are_asked_to_go(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "full")
    assert main([str(tmp_path / "a"), "--output", str(tmp_path / "new" / "place"), "--no-page"]) == 0
    assert (tmp_path / "new" / "place" / "results.csv").is_file()
    assert list((tmp_path / "a").glob("results*")) == []


def test_the_objective_and_its_direction_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "a", final_loss=4.0)
    write_run(tmp_path, "b", final_loss=5.0)
    arguments = [str(tmp_path), "--no-page", "--objective", "final_loss"]
    assert main(arguments) == 0
    assert "best: remat_policy=a" in capsys.readouterr().out
    assert main([*arguments, "--direction", "maximize"]) == 0
    assert "best: remat_policy=b" in capsys.readouterr().out
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (written["objective"]["name"], written["objective"]["maximize"]) == ("final_loss", True)


def test_a_folder_without_runs_is_told_and_the_others_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "sweep", "full")
    assert main([str(tmp_path / "empty"), str(tmp_path / "sweep"), "--no-page"]) == 2
    output = capsys.readouterr()
    assert "empty holds no run folders" in output.err
    assert "best:" in output.out
    assert not list((tmp_path / "empty").iterdir())
    assert (tmp_path / "sweep" / "results.json").is_file()


def test_what_cannot_be_written_is_told_and_the_rest_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, "full")
    (tmp_path / "results.csv").mkdir()
    (tmp_path / "presets").write_text("in the way", encoding="utf-8")
    (tmp_path / "report.html").mkdir()
    assert main([str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "results.csv could not be written: Is a directory." in output.err
    assert "report.html could not be written: Is a directory." in output.err
    assert (tmp_path / "results.json").is_file()
    assert (tmp_path / "results.parquet").is_file()


def test_a_single_run_and_foreign_logs_can_be_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "sweep", "full")
    write_run(tmp_path / "sweep", "unasked", 9000)
    write_log(tmp_path / "theirs" / "train.log", [0.5] * 8)
    done = report(run, tmp_path / "theirs", "--no-page", "--output", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "unasked" not in done.stdout
    assert "nothing proves" in " ".join(done.stdout.split())


@pytest.mark.parametrize("arguments", [[], ["--objective", "speed", "x"], ["--direction", "up", "x"]])
def test_a_wrong_command_line_says_how_it_is_used(arguments: list[str]) -> None:
    done = report(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m primus_hydra.report")


def test_a_reader_that_goes_away_does_not_end_the_writing(tmp_path: Path) -> None:
    for number in range(40):
        write_run(tmp_path, f"run{number:02}", state="failed")
    command = f"{sys.executable} -m primus_hydra.report {tmp_path} --no-page | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.stderr == ""
    assert (tmp_path / "results.json").is_file()


def test_no_composition_and_nothing_large_is_loaded_to_show_a_table() -> None:
    code = "import sys; import primus_hydra.report.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"hydra", "omegaconf", "pandas", "pyarrow", "altair", "jinja2", "vl_convert", "jax", "maxtext"}
