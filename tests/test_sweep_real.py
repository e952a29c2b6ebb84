"""The README's sweep with real MaxText: eight points on the CPU, four of them illegal, a report, the winner again."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, RunCli

PLACES = ("run_name", "base_output_directory", "metrics_file")


def readme_sweep() -> list[str]:
    """Arguments of the sweep that the README shows for a CPU."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    found = re.search(
        r"^(?:\.venv/bin/)?python -m primus_hydra (--multirun model=tiny (?:.*\\\n)*.*)$", readme, re.MULTILINE
    )
    assert found
    return shlex.split(found[1].replace("\\\n", " "))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_sweep_of_the_readme_ranks_what_runs_and_tells_what_cannot(run_cli: RunCli, tmp_path: Path) -> None:
    arguments = readme_sweep()
    done = run_cli(*arguments, timeout_s=800)
    assert done.code == 1, done.err
    assert "8 points: 4 run, 4 invalid" in done.out
    assert "attention=flash does not exist on a CPU" in done.err
    folder = tmp_path / next(text.partition("=")[2] for text in arguments if text.startswith("sweep.dir="))
    records = {file.parent: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/run.json")}
    assert sorted(record["state"] for record in records.values()) == ["completed"] * 4 + ["invalid"] * 4
    completed = {run: record for run, record in records.items() if record["state"] == "completed"}
    assert all(record["result"]["final_loss"] < record["result"]["first_loss"] for record in completed.values())
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert sum(row["rank"] == 1 for row in results["rows"]) >= 1
    assert "<svg" in (folder / "report.html").read_text(encoding="utf-8") or (folder / "report.html").stat().st_size
    again = run_cli(f"sweep.resume={folder}")
    assert "4 done, 4 invalid" in again.out
    assert {run: json.loads((run / "run.json").read_text(encoding="utf-8")) for run in completed} == completed

    winner = next(folder / row["point"] for row in results["rows"] if row["rank"] == 1)
    best = run_cli("--config-dir", str(folder / "presets"), "experiment=best", "action=export", f"run.dir={tmp_path}/b")
    assert best.code == 0, best.err
    identity = json.loads((tmp_path / "b" / "run.json").read_text(encoding="utf-8"))["identity"]
    assert identity == records[winner]["identity"]
