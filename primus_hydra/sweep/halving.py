"""Successive halving: after some steps only the best points go on. Pure decisions; `ladder.py` acts on them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from primus_hydra.errors import Problem
from primus_hydra.maxtext.model_files import load_defaults
from primus_hydra.objective import OBJECTIVES, Objective, choose_objective, describe_figure
from primus_hydra.points import Plan
from primus_hydra.results import MINIMUM_STEPS
from primus_hydra.schema import SweepSettings

SCHEDULE = "learning_rate_schedule_steps"
_ROUNDING = 1e-9


def ranking_objective(settings: SweepSettings) -> Objective:
    """The figure that ranks the points, in the direction that is asked for."""
    direction = None if settings.direction is None else settings.direction.value
    return choose_objective(settings.objective[0], direction)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What a decision rests on; a sweep's folder holds the decisions of one rule."""

    rungs: tuple[int, ...]
    """Steps after which points are compared, ascending."""
    keep: float
    """Fraction that survives, above 0, at most 1."""
    objective: str
    maximize: bool

    @classmethod
    def of(cls, settings: SweepSettings) -> "Rule":
        """The rule that the settings ask for."""
        objective = ranking_objective(settings)
        return cls(
            rungs=tuple(settings.rungs),
            keep=settings.keep,
            objective=objective.name,
            maximize=objective.maximize,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Who goes on after a rung."""

    steps: int
    """The rung."""
    scores: dict[str, float | None]
    """Name of the run folder -> its figure at the rung; None where it failed."""
    survivors: tuple[str, ...]
    """Best first."""
    dropped: dict[str, str]
    """Name -> one sentence that says why."""


def decide(rule: Rule, rung: int, scores: Mapping[str, float | None], total_steps: Mapping[str, int]) -> Decision:
    """Compare the points at a rung.

    Of all that were compared, failed ones included, the fraction `keep` survives, rounded up; whoever is as good as
    the last of them survives too. A point without a figure never does.

    Args:
        rule: how they are compared.
        rung: steps that each point has made.
        scores: name -> figure; None: failed.
        total_steps: name -> steps that the point makes if it survives everything.
    """
    sign, objective = -1.0 if rule.maximize else 1.0, OBJECTIVES[rule.objective]
    figures = {name: score for name, score in scores.items() if score is not None}
    ranked = sorted(figures, key=lambda name: sign * figures[name])
    num_kept = count_kept(rule, len(scores))
    last = figures[ranked[min(num_kept, len(ranked)) - 1]] if ranked else math.nan
    survivors = [name for name in ranked if sign * figures[name] <= sign * last]
    dropped = {}
    for name in scores:
        after = f"after {rung} of {total_steps[name]} steps"
        if name not in figures:
            dropped[name] = f"Not continued {after}: it has no {objective.title} to compare."
        elif name not in survivors:
            position = 1 + sum(sign * other < sign * figures[name] for other in figures.values())
            shown, best = (describe_figure(figures[key], objective) for key in (name, ranked[0]))
            dropped[name] = f"Stopped {after}: {_ordinal(position)} of {len(scores)} ({shown}; the best had {best})."
    return Decision(steps=rung, scores=dict(scores), survivors=tuple(survivors), dropped=dropped)


def count_kept(rule: Rule, num_compared: int) -> int:
    """How many go on, unless some cannot be told apart."""
    return max(1, math.ceil(rule.keep * num_compared - _ROUNDING))


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def final_steps(keys: Mapping[str, Any]) -> int:
    """Steps of the whole run: MaxText takes the schedule's length for `steps=-1`."""
    steps = keys.get("steps", load_defaults()["steps"])
    return int(steps if steps >= 0 else keys.get(SCHEDULE, load_defaults()[SCHEDULE]))


def plan_rung(plan: Plan, rung: int) -> Plan:
    """The plan of the first `rung` steps of a run, in the same folder and with the learning rate of the whole run."""
    schedule = plan.keys.get(SCHEDULE, -1)
    changed = {"steps": rung, SCHEDULE: schedule if schedule >= 0 else final_steps(plan.keys)}
    origins = {key: f"sweep.rungs={rung}" for key in changed if plan.keys.get(key) != changed[key]}
    return replace(plan, keys=plan.keys | changed, origins=plan.origins | origins)


def check_rungs(plans: Sequence[Plan]) -> list[Problem]:
    """What is wrong with `sweep.rungs` for these runs; the settings of the first count."""
    settings = plans[0].composition.settings
    rungs = settings.sweep.rungs
    if not rungs:
        return []
    problems = _check_lengths(plans, rungs)
    if settings.sweep.repeats > 1:
        what = f"sweep.rungs={rungs} compares single runs, and sweep.repeats is {settings.sweep.repeats}."
        fix = "Find the best points with rungs first, then repeat those in a sweep of their own."
        problems.append(Problem(what=what, fix=fix))
    return problems


def _check_lengths(plans: Sequence[Plan], rungs: list[int]) -> list[Problem]:
    """A figure needs its steps, in every attempt: one that continues from a checkpoint warms up as well."""
    warmup = plans[0].composition.settings.run.warmup_steps
    least, shortest = warmup + MINIMUM_STEPS, min(final_steps(plan.keys) for plan in plans)
    problems = []
    if rungs[-1] > shortest:
        what = f"sweep.rungs={rungs}: {rungs[-1]} steps are more than a point makes, steps={shortest}."
        problems.append(Problem(what=what, fix="Let every rung lie below steps."))
    continues = any(plan.keys.get("enable_checkpointing", True) for plan in plans)
    stages = list(pairwise([0, *rungs, shortest])) if continues else [(0, rung) for rung in rungs]
    if any(0 < end - start < least for start, end in stages):
        apart = (
            " and, since runs continue from their checkpoints, all rungs and steps as far apart" if continues else ""
        )
        problems.append(
            Problem(
                what=f"sweep.rungs={rungs}: a run has figures only after {least} steps "
                f"(run.warmup_steps={warmup}, and {MINIMUM_STEPS} that are measured).",
                fix=f"Let the first rung be at least {least}{apart}.",
            )
        )
    return problems
