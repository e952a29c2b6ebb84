"""Looks at a sweep's folder between faults: nothing lost, nothing run twice, nothing that did not happen."""

import json
import math
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from primus_hydra.report.read import read_report
from tests.faults.journal import Attempt, Journal, read_journal
from tests.faults.scenarios import FAILURE, Scenario

Json = dict[str, Any]
_RUN = re.compile(r"(\d{4})-")
_WARMUP = 3
_TOKENS = 128.0


@dataclass(kw_only=True)
class Examiner:
    """What is wrong with a sweep, as far as it was seen; a finding is one sentence."""

    folder: Path
    journal_file: Path
    scenario: Scenario
    seen: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    """(Run folder, its steps) of every result that was ever on record -> the result as text, and the number of starts
    that the journal had then."""
    decisions: list[Json] = field(default_factory=list)

    def look(self, *, is_quiet: bool) -> list[str]:
        """Examine the folder; `is_quiet`: no process of the sweep is alive."""
        findings: list[str] = []
        records = {path.parent.name: _read(path, findings) for path in self.folder.glob("*/run.json")}
        decisions = self._read_decisions(findings)
        journal = read_journal(self.journal_file)  # later than the records: it is never behind them
        for file in (*self.folder.glob("*.json"), *self.folder.glob("*/command.json")):
            _read(file, findings)
        findings += self._compare_with_memory(journal)
        for name, record in records.items():
            findings += self._check_record(name, record, journal[name], is_quiet=is_quiet)
        findings += [f"{name} ran, and has no run folder." for name in journal if name not in records]
        findings += [text for decision in decisions for text in _check_decision(decision, journal)]
        if is_quiet and self.folder.exists():
            findings += self._check_report()
        return findings

    def _read_decisions(self, findings: list[str]) -> list[Json]:
        file = self.folder / "rungs.json"
        decisions: list[Json] = _read(file, findings).get("decisions", []) if file.exists() else []
        if decisions[: len(self.decisions)] != self.decisions:
            findings.append(f"A decision about a rung has changed: {self.decisions} became {decisions}.")
        self.decisions = decisions
        return decisions

    def _compare_with_memory(self, journal: Journal) -> list[str]:
        findings = []
        for (name, steps), (result, num_starts) in self.seen.items():
            again = [attempt for attempt in journal[name][num_starts:] if attempt.steps <= steps]
            if again:
                findings.append(f"{name} was complete with {steps} steps, and ran {len(again)} times again.")
            if result not in self._results_on_record(name, steps):
                findings.append(f"The result of {name} with {steps} steps is lost.")
        return findings

    def _results_on_record(self, name: str, steps: int) -> list[str]:
        found = []
        for file in (self.folder / name).glob("run.json*"):
            record = _read(file, [])
            if record.get("result") and _steps(record) == steps:
                found.append(json.dumps(record["result"]))
        return found

    def _check_record(self, name: str, record: Json, attempts: list[Attempt], *, is_quiet: bool) -> list[str]:
        state, expected = record.get("state"), self.scenario.ending(_number(name))
        if (expected == "invalid") != (state == "invalid") or (expected == "invalid" and attempts):
            return [f"{name} is {state} and ran {len(attempts)} times; it should be {expected}."]
        if state not in ("completed", "skipped"):
            return []
        if expected == "failed":
            return [f"{name} is {state} although it always fails."]
        true = [attempt for attempt in attempts if is_what_happened(record, attempt)]
        self.seen.setdefault((name, _steps(record)), (json.dumps(record["result"]), len(attempts)))
        if not true or (is_quiet and true[-1] is not attempts[-1]):
            return [f"The result of {name} ({state}) is not what its trainer did last: {record['result']}."]
        return []

    def _check_report(self) -> list[str]:
        try:
            read_report([self.folder])
        except Exception as error:  # whatever it is, it is what we look for
            return [f"The report raises {type(error).__name__}: {error}."]
        return []

    def look_at_the_end(self) -> list[str]:
        """Examine a sweep that went to its end without a fault."""
        findings = self.look(is_quiet=True)
        records = {path.parent.name: _read(path, findings) for path in self.folder.glob("*/run.json")}
        numbers = {_number(name) for name in records}
        if numbers != set(range(len(self.scenario.stubs))):
            findings.append(f"Points without a run folder: {set(range(len(self.scenario.stubs))) - numbers}.")
        for name, record in records.items():
            findings += self._check_ending(name, record)
        findings += _compare_results(_read(self.folder / "results.json", findings), records)
        left = [str(file.relative_to(self.folder)) for file in self.folder.rglob(".*") if _is_litter(file)]
        return findings + ([f"Left behind: {', '.join(sorted(left))}."] if left else [])

    def _check_ending(self, name: str, record: Json) -> list[str]:
        state, expected = record.get("state"), self.scenario.ending(_number(name))
        dropped = {name for decision in self.decisions for name in decision["dropped"]}
        if name in dropped:
            return [] if state in ("skipped", "failed") else [f"{name} was dropped at a rung and is {state}."]
        if state != expected:
            return [f"{name} is {state} at the end instead of {expected}: {record.get('reason')}"]
        if state == "failed" and FAILURE not in record["reason"]:
            return [f"{name} failed for another reason than its own: {record['reason']}"]
        return []


def is_what_happened(record: Json, attempt: Attempt) -> bool:
    """Whether the figures on record are those of this attempt, all its steps made. Losses are like no other's."""
    result = record["result"]
    if not attempt.ended or not len(attempt.losses) == attempt.steps == _steps(record) == result["num_steps"]:
        return False
    median = statistics.median(attempt.step_times_s[_WARMUP:])
    ends = (attempt.losses[0], attempt.losses[-1])
    return (result["first_loss"], result["final_loss"]) == ends and math.isclose(
        result["step_time_s"]["median"], median, rel_tol=1e-9
    )


def _check_decision(decision: Json, journal: Journal) -> list[str]:
    rung = decision["steps"]
    findings = []
    for name, score in decision["scores"].items():
        made = [attempt for attempt in journal[name] if attempt.ended and attempt.steps >= rung]
        speeds = [_TOKENS / statistics.median(attempt.step_times_s[_WARMUP:]) for attempt in made]
        if score is not None and not any(math.isclose(score, speed, rel_tol=1e-9) for speed in speeds):
            findings.append(f"Rung {rung} was decided with a figure of {name} that nobody measured: {score}.")
    return findings


def _compare_results(results: Json, records: dict[str, Json]) -> list[str]:
    runs = {run["name"]: run for run in results.get("runs", [])}
    if runs.keys() != records.keys():
        return [f"results.json has other runs than the folder: {runs.keys() ^ records.keys()}."]
    return [
        f"results.json says something else about {name} than its run.json."
        for name, record in records.items()
        if runs[name]["state"] != record["state"]
        or any((record["result"] or {}).get(key) != value for key, value in runs[name]["result"].items())
    ]


def _is_litter(file: Path) -> bool:
    return file.name.endswith(".tmp") or file.name == ".reserve"


def _number(name: str) -> int:
    found = _RUN.match(name)
    assert found is not None, name
    return int(found[1])


def _steps(record: Json) -> int:
    return int(record["composed"]["steps"]["value"])


def _read(file: Path, findings: list[str]) -> Json:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        findings.append(f"{file} cannot be read: {error}.")
        return {}
    assert isinstance(data, dict)
    return data
