"""A sweep before it runs: which points run, which are done already, which cannot run and why."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.table import Table
from rich.text import Text

from primus_hydra.errors import format_problem
from primus_hydra.points import Point
from primus_hydra.redaction import redact_all, secret_values
from primus_hydra.report.rows import describe_differences
from primus_hydra.runs import RecordError, fingerprint, is_abandoned

_MAX_REASON = 160


class Verdict(StrEnum):
    """What happens to one point."""

    RUN = "run"
    RUN_AGAIN = "run again"
    DONE = "done"
    SAME = "same"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One point's place in the plan."""

    verdict: Verdict
    reason: str = ""
    """Why it does not simply run; one sentence."""

    @property
    def runs(self) -> bool:
        """Whether the point is about to run."""
        return self.verdict in (Verdict.RUN, Verdict.RUN_AGAIN)


def judge_points(points: Sequence[Point]) -> list[Standing]:
    """Decide about every point from its plan and from what its run folder says already.

    Points that train exactly the same run once: the later ones are told to be the same.
    """
    first_with: dict[str, int] = {}
    standings = []
    for index, point in enumerate(points):
        identity = fingerprint(point.plan.keys) if point.plan else ""
        if point.plan is None:
            standing = Standing(verdict=Verdict.INVALID, reason=" ".join(problem.what for problem in point.problems))
        elif identity in first_with:
            standing = Standing(verdict=Verdict.SAME, reason=f"trains exactly what point {first_with[identity]} trains")
        else:
            standing = _judge_folder(point)
        first_with.setdefault(identity, index)
        standings.append(standing)
    return standings


def _judge_folder(point: Point) -> Standing:
    if not point.folder.run_json.exists():
        return Standing(verdict=Verdict.RUN)
    try:
        record = point.folder.read_record()
    except RecordError as error:
        return Standing(verdict=Verdict.RUN_AGAIN, reason=str(error))
    state = record.get("state")
    if state == "completed":
        return Standing(verdict=Verdict.DONE, reason="completed in an earlier start of this sweep")
    if state in ("planned", "invalid"):
        return Standing(verdict=Verdict.RUN)
    fate = "its worker died" if is_abandoned(record) else f"was {state}"
    return Standing(verdict=Verdict.RUN_AGAIN, reason=f"{fate}: {record.get('reason') or ''}".rstrip(": "))


def plan_table(points: Sequence[Point], standings: Sequence[Standing]) -> Table:
    """What a person sees before anything starts: point, what differs, verdict, reason."""
    tally = Counter(str(standing.verdict) for standing in standings)
    title = f"{len(points)} points: " + ", ".join(f"{number} {verdict}" for verdict, number in tally.items())
    table = Table(title=Text(title), title_justify="left")
    for name in ("#", "what differs", "verdict", "reason"):
        table.add_column(name, overflow="fold")
    differences = describe_differences([point.overrides for point in points])
    for number, (differs, standing) in enumerate(zip(differences, standings, strict=True)):
        reason = standing.reason if len(standing.reason) <= _MAX_REASON else f"{standing.reason[:_MAX_REASON]}..."
        table.add_row(str(number), Text(differs or "nothing"), str(standing.verdict), Text(reason))
    return table


def write_invalid_record(point: Point) -> None:
    """Record that a point never runs, with the whole reason; a record that is there already is kept.

    Raises:
        OSError: the folder cannot be written.
    """
    if point.folder.run_json.exists():
        return
    record = {
        "schema": 1,
        "name": point.folder.path.name,
        "state": "invalid",
        "failure": None,
        "reason": " ".join(problem.what for problem in point.problems),
        "overrides": list(point.overrides),
        "problems": [format_problem(problem) for problem in point.problems],
        "attempt": 0,
        "result": None,
    }
    point.folder.path.mkdir(parents=True, exist_ok=True)
    point.folder.write_record(redact_all(record, secret_values(os.environ)))
