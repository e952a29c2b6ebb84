"""A report as files for other programs."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from primus_hydra.report.__main__ import main
from primus_hydra.report.files import make_csv, write_all
from primus_hydra.report.model import Row
from tests.report_runs import make_report, make_run, write_run


def refuse(text: str) -> Any:
    raise AssertionError(f"{text} is not JSON")


def test_all_three_files_hold_the_rows_in_their_order(tmp_path: Path) -> None:
    report = make_report(make_run("slow", 500), make_run("odd", float("nan"), final_loss=None), make_run("fast", 2000))
    assert write_all(report, tmp_path / "new") == []
    written = json.loads((tmp_path / "new" / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    table = list(csv.DictReader(io.StringIO((tmp_path / "new" / "results.csv").read_text(encoding="utf-8"))))
    parquet = pyarrow.parquet.read_table(tmp_path / "new" / "results.parquet").to_pylist()
    assert [(row["point"], row["rank"]) for row in written["rows"]] == [("fast", 1), ("slow", 2), ("odd", None)]
    assert [(row["point"], row["rank"]) for row in table] == [("fast", "1"), ("slow", "2"), ("odd", "")]
    assert [(row["point"], row["rank"]) for row in parquet] == [("fast", 1), ("slow", 2), ("odd", None)]
    assert written["rows"][0].keys() == table[0].keys() == parquet[0].keys() == {field.name for field in fields(Row)}


def test_json_holds_the_objective_the_folders_and_the_runs_as_strict_json(tmp_path: Path) -> None:
    run = make_run("a", composed={"steps": 8, "odd": float("inf")}, step_files=(Path("/x/metrics.jsonl"),))
    write_all(make_report(run), tmp_path)
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert (written["schema"], written["folders"]) == (1, ["/sweeps/one"])
    assert (written["objective"]["name"], written["objective"]["maximize"]) == ("tokens_per_second_per_device", True)
    (found,) = written["runs"]
    assert (found["folder"], found["composed"]) == ("/sweeps/one/a", {"steps": 8, "odd": None})
    assert found["step_files"] == ["/x/metrics.jsonl"]


def test_parquet_columns_have_their_types_even_where_nothing_is_known(tmp_path: Path) -> None:
    write_all(make_report(make_run("a", None, state="failed", num_steps_measured=None)), tmp_path)
    schema = pyarrow.parquet.read_schema(tmp_path / "results.parquet")
    kinds = {name: str(schema.field(name).type) for name in ("point", "rank", "score", "num_steps_measured", "failure")}
    assert kinds == {
        "point": "string",
        "rank": "int64",
        "score": "double",
        "num_steps_measured": "int64",
        "failure": "string",
    }


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_a_spreadsheet_would_execute_is_defused_and_numbers_are_not(start: str) -> None:
    report = make_report(make_run(f"{start}cmd|' /C calc'!A0", final_loss=-1.5))
    (row,) = csv.DictReader(io.StringIO(make_csv(report.rows), newline=""))
    assert row["point"] == row["differs"] == f"'{start}cmd|' /C calc'!A0"
    assert row["final_loss"] == "-1.5"


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    problems = write_all(make_report(make_run("a")), tmp_path / "file")
    assert problems == [f"The results could not be written into {tmp_path / 'file'}: File exists."]


def test_one_file_that_cannot_be_written_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "results.json").mkdir()
    problems = write_all(make_report(make_run("a")), tmp_path)
    assert problems == [f"{tmp_path / 'results.json'} could not be written: Is a directory."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.csv", "results.json", "results.parquet"]


def test_where_nothing_more_can_be_written_it_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    assert main([str(tmp_path), "--no-page"]) == 0
    before = {name: (tmp_path / name).read_bytes() for name in ("results.csv", "results.json", "results.parquet")}
    write_run(tmp_path, "b", 2000)
    # A limit on the size of files fails like a full disk.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "from primus_hydra.report.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), "--no-page"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    assert done.returncode == 0
    assert [f"{tmp_path / name} could not be written: File too large." for name in before] == done.stderr.splitlines()[
        :3
    ]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert not list(tmp_path.rglob("*.tmp"))
