"""From rung to rung: run what is left, decide, write the decision down, then act on it.

`rungs.json` keeps every decision, so a sweep that is taken up again repeats none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from primus_hydra.atomic_files import write_json_atomic
from primus_hydra.destination import has_checkpoint
from primus_hydra.objective import OBJECTIVES, read_score
from primus_hydra.points import Plan
from primus_hydra.runs import RecordError, RunFolder, read_json
from primus_hydra.sweep.halving import Decision, Rule, count_kept, decide, final_steps, plan_rung
from primus_hydra.sweep.records import count_planned_steps, read_if_there, skip_run
from primus_hydra.tell import tell

RUNGS_FILE = "rungs.json"
"""File in the sweep's folder that holds the decisions."""
_ENDED = frozenset({"completed", "failed", "timed_out", "skipped"})


class Ladder:
    """The decisions of one sweep's folder."""

    def __init__(self, sweep_dir: Path, rule: Rule) -> None:
        """Read what was decided already.

        Raises:
            RecordError: rungs.json is damaged, or was decided by another rule.
        """
        self.rule = rule
        self._file = sweep_dir / RUNGS_FILE
        self._decisions = {decision.steps: decision for decision in self._read()} if self._file.exists() else {}

    def _read(self) -> list[Decision]:
        data = read_json(self._file)
        try:
            earlier = Rule(**data["rule"] | {"rungs": tuple(data["rule"]["rungs"])})
            decisions = [
                Decision(
                    steps=int(entry["steps"]),
                    scores=dict(entry["scores"]),
                    survivors=tuple(entry["survivors"]),
                    dropped=dict(entry["dropped"]),
                )
                for entry in data["decisions"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{self._file} is damaged ({error}). Start this sweep in another folder.") from error
        then, now = asdict(earlier), asdict(self.rule)
        if differing := [f"{name}: {then[name]} there, {now[name]} now" for name in now if now[name] != then[name]]:
            raise RecordError(
                f"The rungs of this sweep were decided by another rule ({'; '.join(differing)}), {self._file}. "
                "Repeat the sweep as it was, or start it in another folder with sweep.dir=DIR."
            )
        return decisions

    def dropped(self) -> dict[str, str]:
        """Name of the run folder -> why it does not go on."""
        return {name: reason for decision in self._decisions.values() for name, reason in decision.dropped.items()}

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse points that were not there when the first rung was decided.

        Raises:
            RecordError: there are some.
        """
        first = next(iter(self._decisions.values()), None)
        if first is not None and (new := sorted(set(names) - first.scores.keys())):
            raise RecordError(
                f"The first rung of this sweep was decided without {', '.join(new)} ({self._file}). "
                "Start a sweep with these points in another folder with sweep.dir=DIR."
            )

    def decision(self, rung: int) -> Decision | None:
        """What was decided at a rung; None: not yet."""
        return self._decisions.get(rung)

    def add(self, decision: Decision) -> None:
        """Write a decision down; only then may it be acted on.

        Raises:
            OSError: the folder cannot be written.
        """
        decisions = [*self._decisions.values(), decision]
        data = {"schema": 1, "rule": asdict(self.rule), "decisions": [asdict(entry) for entry in decisions]}
        write_json_atomic(self._file, data)
        self._decisions[decision.steps] = decision


def climb(ladder: Ladder, plans: Sequence[Plan], run: Callable[[Sequence[Plan]], bool]) -> None:
    """Run all plans up to the first rung, the survivors up to the next, and the last survivors to their end.

    Args:
        ladder: decisions of earlier starts are taken as they are.
        plans: whole runs; completed ones take part in the comparison.
        run: writes and executes run folders; returns whether the sweep goes on.

    Raises:
        OSError, RunFolderError: a decision or its consequence cannot be written.
    """
    last = min((final_steps(plan.keys) for plan in plans), default=0)
    for rung in (rung for rung in ladder.rule.rungs if rung < last):
        decision = ladder.decision(rung)
        if decision is None:
            if not run([plan_rung(plan, rung) for plan in plans if _steps_completed(plan.folder) < rung]):
                return
            if unknown := [plan.folder.path.name for plan in plans if not _has_ended(plan.folder)]:
                tell(f"Rung {rung} cannot be decided yet: {', '.join(unknown)} came to no end.")
                return
            decision = _decide(ladder.rule, rung, plans)
            ladder.add(decision)
            tell(describe_decision(ladder.rule, decision, plans))
        for plan in plans:
            if plan.folder.path.name in decision.dropped:
                _drop(plan, decision.dropped[plan.folder.path.name])
        plans = [plan for plan in plans if plan.folder.path.name in decision.survivors]
    run([plan for plan in plans if _steps_completed(plan.folder) < final_steps(plan.keys)])


def describe_decision(rule: Rule, decision: Decision, plans: Sequence[Plan]) -> str:
    """Who goes on, to which step, and from where.

    Args:
        rule: that it rests on.
        decision: just made.
        plans: all that were compared.
    """
    going = [plan for plan in plans if plan.folder.path.name in decision.survivors]
    if not going:
        return f"Rung {decision.steps}: none of {len(plans)} points goes on."
    num_tied = len(going) - min(count_kept(rule, len(plans)), len(going))
    tied = f" ({len(going) - num_tied} would; {num_tied} more cannot be told apart)" if num_tied else ""
    ends = [min([rung for rung in rule.rungs if rung > decision.steps] or [final_steps(plan.keys)]) for plan in going]
    end = f"step {ends[0]}" if len(set(ends)) == 1 else "their last steps"
    continues = all(has_checkpoint(plan.keys) for plan in going)
    how = "from their checkpoints" if continues else "from the beginning (no checkpoint)"
    if not continues and any(has_checkpoint(plan.keys) for plan in going):
        how = "from their checkpoints where they have one"
    verb = "goes" if len(going) == 1 else "go"
    return f"Rung {decision.steps}: {len(going)} of {len(plans)} points {verb} on to {end}, {how}{tied}."


def _has_ended(folder: RunFolder) -> bool:
    """Whether the point itself, and not a signal or a dead worker, decided what became of the run."""
    return (read_if_there(folder) or {}).get("state") in _ENDED


def _decide(rule: Rule, rung: int, plans: Sequence[Plan]) -> Decision:
    objective = replace(OBJECTIVES[rule.objective], maximize=rule.maximize)
    return decide(
        rule,
        rung,
        {plan.folder.path.name: read_score(read_if_there(plan.folder) or {}, objective) for plan in plans},
        {plan.folder.path.name: final_steps(plan.keys) for plan in plans},
    )


def _drop(plan: Plan, reason: str) -> None:
    """Only a run that stands at a rung is told to be stopped there: a failed one stays failed."""
    if 0 < _steps_completed(plan.folder) < final_steps(plan.keys):
        skip_run(plan.folder, reason)


def _steps_completed(folder: RunFolder) -> int:
    """Steps of the attempt that completed; 0 where the last one did not."""
    record = read_if_there(folder) or {}
    return (count_planned_steps(record) or 0) if record.get("state") == "completed" else 0
