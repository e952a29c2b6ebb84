"""The report of a folder of runs: what is ranked, what is not, and what a person and a program read of it."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from primus_hydra.report.__main__ import main
from primus_hydra.report.rows import Row, rank_rows, read_rows
from primus_hydra.report.sweep_table import describe_ranking, sweep_table
from primus_hydra.runs import this_worker


def make_row(name: str, tokens: float | None = 1000.0, *, spread: float = 0.01, **changes: Any) -> Row:
    """A completed run of 1 s a step whose middle half is `spread` wide on either side."""
    values = {
        "folder": name,
        "differs": name,
        "state": "completed",
        "failure": None,
        "reason": "",
        "rank": None,
        "step_time_s": 1.0,
        "step_time_p25_s": 1.0 - spread,
        "step_time_p75_s": 1.0 + spread,
        "num_steps_measured": 5,
        "tokens_per_second_per_device": tokens,
        "tflops_per_second_per_device": 2.0,
        "final_loss": 4.0,
        "peak_device_memory_gib": 100.0,
        "peak_host_memory_gib": 3.0,
        "platform": "gpu",
    }
    return Row(**{**values, **changes})


def ranks(*rows: Row) -> dict[str, int | None]:
    return {row.folder: row.rank for row in rank_rows(rows)}


def write_run(path: Path, name: str, tokens: float | None = 1000.0, **changes: Any) -> None:
    """A run folder with a record as the worker writes it; figures inside `result` by their own names."""
    figures = {
        "step_time_s": {"median": 1.0, "p25": 0.99, "p75": 1.01},
        "num_steps_measured": 5,
        "too_few_steps": False,
        "tokens_per_second_per_device": tokens,
        "final_loss": 4.0,
    }
    result = figures | {key: changes.pop(key) for key in figures if key in changes}
    record = {"state": "completed", "failure": None, "reason": "", "overrides": [f"remat_policy={name}", "steps=8"]}
    (path / name).mkdir()
    (path / name / "run.json").write_text(json.dumps(record | {"result": result} | changes), encoding="utf-8")


def draw(rows: list[Row], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(sweep_table(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_fastest_run_comes_first() -> None:
    ranked = rank_rows([make_row("slow", 500), make_row("fast", 2000), make_row("middle", 1000)])
    assert [(row.folder, row.rank) for row in ranked] == [("fast", 1), ("middle", 2), ("slow", 3)]


def test_runs_whose_middle_halves_overlap_share_a_rank_and_the_next_has_its_position() -> None:
    assert ranks(make_row("a", 1000), make_row("b", 995), make_row("c", 900)) == {"a": 1, "b": 1, "c": 3}


def test_a_tie_is_with_the_first_of_its_rank_and_does_not_creep_on() -> None:
    found = ranks(*(make_row(str(tokens), tokens) for tokens in (1000, 985, 970, 955)))
    assert found == {"1000": 1, "985": 1, "970": 3, "955": 3}


@pytest.mark.parametrize("state", ["failed", "invalid", "running", "abandoned", "unreadable", "planned", "timed_out"])
def test_only_a_completed_run_has_a_rank(state: str) -> None:
    assert ranks(make_row("other", 9000, state=state), make_row("done")) == {"done": 1, "other": None}


@pytest.mark.parametrize("changes", [{"tokens": None}, {"step_time_s": None}, {"tokens": 0.0}])
def test_a_run_without_figures_has_no_rank(changes: dict[str, Any]) -> None:
    assert ranks(make_row("none", **changes), make_row("done")) == {"done": 1, "none": None}


def test_a_run_without_quartiles_is_ranked_by_its_median() -> None:
    assert ranks(make_row("a", 1000, step_time_p25_s=None, step_time_p75_s=None), make_row("b", 999, spread=0.0)) == {
        "a": 1,
        "b": 2,
    }


def test_rows_name_what_differs_and_nothing_else(tmp_path: Path) -> None:
    write_run(tmp_path, "full")
    write_run(tmp_path, "minimal", 1200)
    assert [(row.differs, row.rank) for row in read_rows(tmp_path)] == [
        ("remat_policy=minimal", 1),
        ("remat_policy=full", 2),
    ]


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1.0, "fast", True, [], {}, None])
def test_a_figure_that_is_none_is_neither_ranked_nor_written(tmp_path: Path, figure: object) -> None:
    write_run(tmp_path, "odd", tokens_per_second_per_device=figure, final_loss=figure if figure != -1.0 else None)
    (row,) = read_rows(tmp_path)
    assert (row.rank, row.tokens_per_second_per_device, row.final_loss) == (None, None, None)


def test_too_few_steps_have_no_rank_whatever_figures_there_are(tmp_path: Path) -> None:
    write_run(tmp_path, "short", 9000, too_few_steps=True)
    (row,) = read_rows(tmp_path)
    assert (row.rank, row.tokens_per_second_per_device) == (None, None)


@pytest.mark.parametrize("text", ["", '{"state": "comp', "[]", "{}", '{"state": 3}'])
def test_a_broken_record_is_unreadable_and_hides_no_other_run(tmp_path: Path, text: str) -> None:
    write_run(tmp_path, "good")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text(text, encoding="utf-8")
    good, broken = read_rows(tmp_path)
    assert (good.folder, good.rank) == ("good", 1)
    assert (broken.folder, broken.state, broken.rank) == ("broken", "unreadable", None)
    assert "run.json" in broken.reason


@pytest.mark.parametrize(
    "changes",
    [
        *({"overrides": None}, {"overrides": 3}, {"overrides": [1, []]}),
        *({"result": None}, {"result": []}, {"result": "x"}, {"result": {"step_time_s": 3}}),
        *({"failure": []}, {"reason": None}, {"state": "running", "worker": {"pid": "x"}}),
    ],
)
def test_fields_of_wrong_types_do_not_end_the_report(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_run(tmp_path, "odd", **changes)
    (row,) = read_rows(tmp_path)
    draw([row], 80)


def test_a_run_goes_on_or_its_worker_is_dead(tmp_path: Path) -> None:
    write_run(tmp_path, "alive", state="running", worker=this_worker(), result=None)
    write_run(tmp_path, "dead", state="running", worker=this_worker() | {"boot_id": "another boot"}, result=None)
    assert {row.folder: row.state for row in read_rows(tmp_path)} == {"alive": "running", "dead": "abandoned"}


@pytest.mark.parametrize(
    ("counts", "text"), [((5, 5), "median of 5 steps"), ((1,), "median of 1 step "), ((5, 9), "median of 5 to 9 steps")]
)
def test_the_basis_of_the_ranking_is_said(counts: tuple[int, ...], text: str) -> None:
    rows = rank_rows([make_row(str(index), num_steps_measured=count) for index, count in enumerate(counts)])
    assert text in describe_ranking(rows)


def test_the_title_names_the_best_run_a_tie_or_that_there_is_none() -> None:
    assert describe_ranking(rank_rows([make_row("a"), make_row("b", 10)])).startswith("2 runs; best: a.")
    assert describe_ranking(rank_rows([make_row("a"), make_row("b")])).startswith("2 runs; 2 share the first rank:")
    assert describe_ranking([make_row("a", state="failed")]) == "1 run, none with a score."


@pytest.mark.parametrize("width", [80, 109, 110, 140])
def test_every_column_can_be_read_at_every_width(width: int) -> None:
    name = "remat_policy=save_dot_except_mlp per_device_batch_size=4"
    rows = rank_rows([make_row(name), make_row("x", None, state="failed", failure="out_of_memory", reason="No room.")])
    shown = draw(rows, width)
    assert max(map(len, shown.splitlines())) <= width
    header = next(line for line in shown.splitlines() if "what differs" in line)
    assert all(len(cell) >= len("rank") + 2 for cell in header.strip("┃").split("┃"))
    for text in ("rank", "tok/s/dev", "step time, s", "state", "1,000", "completed", "x: No room."):
        assert text in shown
    assert ("loss" in header, "memory, GiB" in header) == (width >= 110, width >= 110)


@pytest.mark.parametrize("width", [80, 120])
def test_a_name_with_markup_is_printed_as_it_is(width: int) -> None:
    shown = draw([make_row("[bold]x[/nothing]", None, state="failed", reason="[/red] y")], width)
    assert shown.count("[bold]x[/nothing]") == 2
    assert "[/red] y" in shown


def test_results_are_written_as_csv_and_as_valid_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "full")
    write_run(tmp_path, "odd", float("nan"), final_loss=float("nan"))
    assert main([str(tmp_path)]) == 0
    assert "best: remat_policy=full" in capsys.readouterr().out

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert [(row["folder"], row["rank"], row["final_loss"]) for row in rows] == [("full", 1, 4.0), ("odd", None, None)]
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [(row["folder"], row["rank"]) for row in table] == [("full", "1"), ("odd", "")]


def test_a_folder_without_runs_is_told_and_the_others_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "sweep").mkdir()
    write_run(tmp_path / "sweep", "full")
    assert main([str(tmp_path / "empty"), str(tmp_path / "sweep")]) == 2
    output = capsys.readouterr()
    assert "empty holds no run folders" in output.err
    assert "best:" in output.out


def test_results_that_cannot_be_written_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "full")
    (tmp_path / "results.csv").mkdir()
    assert main([str(tmp_path)]) == 0
    assert "could not be written" in capsys.readouterr().err


def test_the_command_without_a_folder_says_how_it_is_used() -> None:
    command = [sys.executable, "-m", "primus_hydra.report"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    assert (done.returncode, done.stderr) == (2, "Usage: python -m primus_hydra.report SWEEP_DIR...\n")
