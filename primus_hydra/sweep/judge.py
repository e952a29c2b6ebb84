"""A sweep before it runs: which points run, which are done already, which cannot run and why."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from primus_hydra.destination import has_checkpoint
from primus_hydra.liveness import is_abandoned
from primus_hydra.points import Plan, Point
from primus_hydra.report.digits import format_count
from primus_hydra.report.short_names import shorten
from primus_hydra.runs import NOT_BEGUN, Record, RecordError
from primus_hydra.schema import Action, SweepSettings
from primus_hydra.sweep.halving import final_steps
from primus_hydra.sweep.records import count_planned_steps

_MAX_REASON = 160
_SHORT_REASON = 60
"""Characters of a reason that is no longer in its cell than a reference to it."""


class Verdict(StrEnum):
    """What happens to one run of a point."""

    RUN = "run"
    RUN_AGAIN = "run again"
    DONE = "done"
    SAME = "same"
    SKIPPED = "skipped"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One run's place in the plan."""

    run: Point
    """One repeat of a point."""
    verdict: Verdict
    reason: str = ""
    """Why it does not simply run; one sentence."""
    same_as: Point | None = None
    """The run that trains the same, for the verdict `same`."""

    @property
    def starts(self) -> bool:
        """Whether the run is about to start."""
        return self.verdict in (Verdict.RUN, Verdict.RUN_AGAIN)


Seen = dict[tuple[str, int], Point]
"""(Fingerprint with the settings of the run, repeat) -> the first run that has them."""


def judge_points(runs: Sequence[Point], seen: Seen) -> list[Standing]:
    """Decide about every run from its plan and from what its run folder says already.

    Points that train exactly the same run once: the later ones are told to be the same.

    Args:
        runs: the points, repeats included.
        seen: runs of earlier calls; those of this call are added.
    """
    return [_judge(run, run.plan, seen) for run in runs]


def _judge(run: Point, plan: Plan | None, seen: Seen) -> Standing:
    if plan is None:
        reason = " ".join(problem.what for problem in run.problems)
        return Standing(run=run, verdict=Verdict.INVALID, reason=reason)
    # What a run may take, or is measured after, is no part of what it trains; points may differ by it all the same.
    settings = replace(plan.composition.settings.run, dir=None, accept=[])
    first = seen.setdefault((f"{plan.fingerprint} {settings}", run.repeat), run)
    if first is not run:
        reason = f"trains exactly what point {first.number} trains"
        return Standing(run=run, verdict=Verdict.SAME, reason=reason, same_as=first)
    verdict, reason = _judge_folder(run, plan)
    return Standing(run=run, verdict=verdict, reason=reason)


def _judge_folder(run: Point, plan: Plan) -> tuple[Verdict, str]:
    if not run.folder.run_json.exists():
        return Verdict.RUN, ""
    try:
        record = run.folder.read_record()
    except RecordError as error:
        return Verdict.RUN_AGAIN, str(error)
    state, reason = record.get("state"), str(record.get("reason") or "")
    if state == "completed":
        return _judge_completed(record, plan)
    if state in NOT_BEGUN:
        return Verdict.RUN, ""
    if state == "skipped" and _still_skips(record, plan.composition.settings.sweep):
        return Verdict.SKIPPED, reason
    fate = "its worker died" if is_abandoned(record) else f"was {state}"
    return Verdict.RUN_AGAIN, f"{fate}: {reason}".removesuffix(": ")


def _judge_completed(record: Record, plan: Plan) -> tuple[Verdict, str]:
    made = count_planned_steps(record)
    planned = final_steps(plan.keys)
    if made is not None and made < planned:
        how = "continues from its checkpoint" if has_checkpoint(plan.keys) else "begins again (no checkpoint)"
        return Verdict.RUN_AGAIN, f"completed {made} of {planned} steps; {how}"
    elsewhere = f", as point {record['point']}" if record.get("point") not in (plan.number, None) else ""
    return Verdict.DONE, f"completed in an earlier start of this sweep{elsewhere}"


def _still_skips(record: Record, settings: SweepSettings) -> bool:
    """Whether what stopped the run early is still asked for."""
    causes = {"slow": settings.stop_below is not None, "rung": bool(settings.rungs)}
    return causes.get(str(record.get("failure")), False)


def describe_standings(standings: Sequence[Standing], action: Action) -> str:
    """`2 run, 1 done`; `2 check, 1 done` where nothing is trained."""
    tally = Counter(_name_verdict(standing, action) for standing in standings)
    return ", ".join(f"{number} {verdict}" for verdict, number in tally.items())


def _name_verdict(standing: Standing, action: Action) -> str:
    return str(standing.verdict) if action is Action.train or not standing.starts else action.value


def plan_table(
    standings: Sequence[Standing], differences: Mapping[int | None, str], action: Action = Action.train
) -> RenderableType:
    """What a person sees before anything starts: point, what differs, verdict, reason.

    A long reason that several points share is told once, below the table.

    Args:
        standings: of all runs; the repeats of a point share a line.
        differences: number of the point -> what not all points share.
        action: what is done with those that start.
    """
    points: defaultdict[int | None, list[Standing]] = defaultdict(list)
    for standing in standings:
        points[standing.run.number].append(standing)
    count = format_count(len(points), "point")
    runs = f", {len(standings)} runs" if len(standings) > len(points) else ""
    table = Table(title=Text(f"{count}{runs}: {describe_standings(standings, action)}"), title_justify="left")
    title, names = shorten([differences[number] or "nothing" for number in points])
    for column in ("#", title, "verdict", "reason"):
        table.add_column(column, overflow="fold")
    reasons = {
        number: " ".join(dict.fromkeys(standing.reason for standing in several if standing.reason))
        for number, several in points.items()
    }
    count_of = Counter(reasons.values())
    shared = [reason for reason, number in count_of.items() if number > 1 and len(reason) > _SHORT_REASON]
    for (number, several), name in zip(points.items(), names, strict=True):
        verdict = describe_standings(several, action) if len(several) > 1 else _name_verdict(several[0], action)
        reason = reasons[number]
        shown = reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]}..."
        shown = f"{_name_rules(several)}see {shared.index(reason) + 1} below" if reason in shared else shown
        table.add_row(str(number), Text(name), Text(verdict), Text(shown))
    return Group(table, *(Text(f"{number}: {reason}") for number, reason in enumerate(shared, start=1)))


def _name_rules(standings: Sequence[Standing]) -> str:
    """Rules that refuse a point, as they are named in `run.accept`."""
    rules = dict.fromkeys(problem.rule for standing in standings for problem in standing.run.problems if problem.rule)
    return f"{', '.join(rules)}: " if rules else ""
