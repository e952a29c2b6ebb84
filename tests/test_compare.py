"""`python -m primus_hydra.compare A B`: what differs between two runs, beside what came of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.compare import main
from primus_hydra.report.comparison import NothingToCompareError, compare
from primus_hydra.report.comparison_table import describe_verdict
from tests.report_runs import metrics_line, write_log, write_run

REPOSITORY = Path(__file__).parent.parent


def write_full_run(sweep: Path, name: str, tokens: float, *, env: dict[str, str], **keys: Any) -> Path:
    """A completed run with its configuration, environment and versions."""
    composed = {
        key: {"value": value, "origin": "test"} for key, value in {"steps": 8, "run_name": name, **keys}.items()
    }
    folder = write_run(sweep, name, tokens, composed=composed, versions={"jax": f"0.12.{len(name)}"})
    (folder / "command.json").write_text(json.dumps({"env": env, "trainer": None}), encoding="utf-8")
    return folder


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """A slower and a faster run that differ in every kind of thing."""
    a = write_full_run(
        tmp_path, "a", 1000, env={"XLA_FLAGS": "--xla_x=1 --xla_same=2", "HIP": "1"}, remat_policy="full"
    )
    b = write_full_run(
        tmp_path, "bb", 1500, env={"XLA_FLAGS": "--xla_same=2", "HIP": "1", "NEW": ""}, remat_policy="[red]"
    )
    return a, b


def test_figures_stand_beside_each_other_with_their_ratio(two_runs: tuple[Path, Path]) -> None:
    figures = {figure.name: (figure.a, figure.b, figure.ratio) for figure in compare(*two_runs).figures}
    assert figures["tokens_per_second_per_device"] == (1000, 1500, 1.5)
    assert figures["final_loss"] == (4, 4, 1)


def test_everything_that_differs_is_named_and_nothing_else(two_runs: tuple[Path, Path]) -> None:
    found = {(kind, name): values for kind, name, values in compare(*two_runs).differences}
    assert found == {
        ("key", "remat_policy"): ("full", "[red]"),
        ("environment", "NEW"): ("(not set)", ""),
        ("XLA flag", "xla_x"): ("1", "(not set)"),
        ("version", "jax"): ("0.12.1", "0.12.2"),
    }


def test_a_sweep_stands_for_its_best_run(two_runs: tuple[Path, Path]) -> None:
    a, b = two_runs
    comparison = compare(a.parent, a)
    assert [run.folder for run in comparison.runs] == [b, a]


def test_of_repeats_a_scored_one_is_compared(tmp_path: Path) -> None:
    write_run(tmp_path, "x", state="failed", repeat=1)
    write_run(tmp_path, "x-repeat2", repeat=2)
    assert compare(tmp_path, tmp_path).runs[0].name == "x-repeat2"


def test_the_figures_of_a_run_that_failed_are_shown_as_no_score(tmp_path: Path) -> None:
    a = write_run(tmp_path, "a", state="failed", failure="crash")
    b = write_run(tmp_path, "b", None, too_few_steps=True)
    speed = compare(a, b).figures[0]
    assert (speed.name, speed.a, speed.b, speed.ratio) == ("tokens_per_second_per_device", 1000, None, None)


def test_a_foreign_run_can_be_compared(two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    write_log(tmp_path / "theirs" / "train.log", [0.5] * 8)
    comparison = compare(two_runs[0], tmp_path / "theirs")
    assert (comparison.runs[1].state, comparison.figures[0].ratio) == ("foreign", 2)


def test_of_a_foreign_run_the_configuration_is_not_known_and_no_difference_is_made_up(
    two_runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "theirs" / "train.log", [0.5] * 8)
    assert main([str(two_runs[0]), str(tmp_path / "theirs")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The configuration of B is not known (it was run without primus_hydra)" in shown
    assert "remat_policy" not in shown
    assert "No key, variable, flag or version differs." not in shown


def test_a_plan_that_was_run_without_us_has_its_planned_configuration(
    two_runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    composed = {"remat_policy": {"value": "minimal"}, "steps": {"value": 8}}
    folder = write_run(tmp_path, "c", state="planned", attempt=0, result=None, composed=composed)
    (folder / "metrics.jsonl").write_text("".join(metrics_line(step, 0.5) for step in range(8)), encoding="utf-8")
    assert main([str(two_runs[0]), str(folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "B was run without primus_hydra: its configuration is what was planned." in shown
    assert "minimal" in shown


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"tokens": 1005}, "A and B cannot be told apart by tokens/s/device (intervals overlap)."),
        ({"tokens": 1000}, "A and B cannot be told apart by tokens/s/device (figures are equal)."),
        (
            {"tokens": 580},
            "B is clearly slower (tokens/s/device): 0.58x of A. One run each: drift between runs is not covered.",
        ),
        (
            {"tokens": 1500},
            "B is clearly faster (tokens/s/device): 1.50x of A. One run each: drift between runs is not covered.",
        ),
        ({"tokens": 1500, "state": "failed"}, "No verdict: B has no score."),
    ],
)
def test_the_verdict_says_what_the_figures_can_tell(tmp_path: Path, changes: dict[str, Any], verdict: str) -> None:
    a, b = write_run(tmp_path, "a", 1000), write_run(tmp_path, "b", **changes)
    assert describe_verdict(compare(a, b)) == verdict


@pytest.mark.parametrize(
    ("objective", "figures", "verdict"),
    [
        ("step_time_s", {"step_time_s": {"median": 2.0, "p25": 2.0, "p75": 2.0}}, "B is clearly slower (step time, s)"),
        ("final_loss", {"final_loss": 3.0}, "B's final loss is 0.75x that of A. One run each: nothing tells whether"),
    ],
)
def test_the_verdict_is_about_the_objective_of_the_first(
    tmp_path: Path, objective: str, figures: dict[str, Any], verdict: str
) -> None:
    settings = {"sweep": {"objective": [objective]}}
    a, b = write_run(tmp_path, "a", settings=settings), write_run(tmp_path, "b", **figures)
    assert describe_verdict(compare(a, b)).startswith(verdict)


def test_repeats_are_compared_by_their_medians_and_their_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sweep, speeds in (("one", (1000, 1010, 1100)), ("two", (500, 520, 600))):
        for repeat, speed in enumerate(speeds, start=1):
            name = "x" if repeat == 1 else f"x-repeat{repeat}"
            write_run(tmp_path / sweep, name, speed, repeat=repeat, overrides=["remat_policy=full"])
    assert main([str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "│ tokens/s/device │ 1,010 │ 520 │ 0.515 │" in shown
    assert "│ repeats │ 3 │ 3 │ │" in shown
    assert "│ steps measured │ 15 │ 15 │ │" in shown
    assert "│ interval of tokens/s/device │ 1,000 to 1,100 │ 500 to 600 │ │" in shown
    assert "B is clearly slower (tokens/s/device): 0.51x of A." in shown
    assert "One run each" not in shown


def test_the_tables_show_both_and_no_markup_is_read(
    two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder) for folder in two_runs]) == 0
    shown = capsys.readouterr().out
    for text in ("tokens/s/device", "1,000", "1,500", "1.500", "remat_policy", "[red]", "(not set)", "completed"):
        assert text in shown


def test_json_is_for_programs(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", *(str(folder) for folder in two_runs)]) == 0
    written = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in written["runs"]] == ["a", "bb"]
    assert (written["objective"], written["verdict"][:19]) == ("tokens_per_second_per_device", "B is clearly faster")
    assert written["rests_on"][0]["num_steps_measured"] == 5
    assert {"kind": "key", "name": "remat_policy", "a": "full", "b": "[red]"} in written["differences"]
    assert written["figures"][0] == {"name": "tokens_per_second_per_device", "a": 1000, "b": 1500, "ratio": 1.5}


def test_equal_runs_differ_in_nothing(two_runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(two_runs[0]), str(two_runs[0])]) == 0
    assert "No key, variable, flag or version differs." in capsys.readouterr().out


def test_a_folder_that_stands_for_no_run_is_an_error(tmp_path: Path) -> None:
    write_run(tmp_path / "sweep", "a", state="failed")
    write_run(tmp_path / "sweep", "b", state="failed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToCompareError, match="holds 2 runs and none has a score"):
        compare(tmp_path / "sweep", tmp_path / "sweep" / "a")
    with pytest.raises(NothingToCompareError, match="holds no run folders"):
        compare(tmp_path / "sweep" / "a", tmp_path / "empty")


@pytest.mark.parametrize("arguments", [[], ["nowhere", "nowhere"], ["a"]])
def test_bad_input_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "primus_hydra.compare", *arguments]
    env = {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere cannot be read" in done.stderr or done.stderr.startswith("usage: python -m primus_hydra.compare")
