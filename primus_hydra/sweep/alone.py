"""Points that somebody else's launcher runs, perhaps in processes of its own: they share the sweep's folder, no more.

With Hydra's own launchers each point is planned and executed where Hydra calls the program's task, one after the other
or side by side as that launcher has it. What came of them is read from their run folders.
"""

import math
import sys
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from primus_hydra import worker
from primus_hydra.actions import perform_plan, warn
from primus_hydra.errors import Problem, format_problems
from primus_hydra.points import Plan, Point
from primus_hydra.runs import RecordError, RunFolder, RunFolderError
from primus_hydra.schema import Action, SweepSettings
from primus_hydra.sweep.judge import Verdict, judge_points
from primus_hydra.sweep.outcomes import read_outcome
from primus_hydra.sweep.records import describe_write_error, write_invalid_record, write_plans
from primus_hydra.sweep.summary import show_ranking
from primus_hydra.tell import tell

type Score = float | tuple[float, ...]
"""One figure, or one for each of several objectives; NaN where there is none."""

_UNDERSTOOD = frozenset({"dir", "resume", "grid", "zip", "points", "on_invalid", "objective", "direction"})
"""Settings under `sweep` that hold whoever launches the points."""


def check_settings(config: DictConfig) -> list[Problem]:
    """Settings that only our own launcher follows, where another one is chosen.

    Args:
        config: what Hydra composed for the sweep, with its own node.
    """
    launcher = config.hydra.runtime.choices["hydra/launcher"]
    if launcher == "local":
        return []
    plain = OmegaConf.structured(SweepSettings)
    told = [f"sweep.{name}" for name in plain if name not in _UNDERSTOOD and config.sweep[name] != plain[name]]
    told += ["action"] if config.action != Action.train.value else []
    return [
        Problem(
            what=f"{name}={OmegaConf.select(config, name)} has no effect with hydra/launcher={launcher}.",
            fix="Leave the setting out, or use hydra/launcher=local.",
        )
        for name in told
    ]


def run_alone(point: Point) -> Score:
    """Write and execute one point, unless it is complete already; a failed run is told, recorded and not raised.

    Returns:
        What Hydra's sweepers take for the point's result.

    Raises:
        KeyboardInterrupt: the run was stopped by Ctrl-C or SIGTERM.
    """
    plan = point.plan
    try:
        if plan is None:
            return _refuse(point)
        if plan.composition.settings.action is not Action.train:
            perform_plan(plan)
            return math.nan
        (standing,) = judge_points([point], {})
        if standing.verdict is not Verdict.DONE:
            _execute(point, plan)
    except (OSError, RunFolderError) as error:
        tell(describe_write_error(error), file=sys.stderr)
        return math.nan
    outcome = read_outcome(point, [standing], plan.composition.settings.sweep.objective)
    scores = tuple(math.nan if score is None else score for score in outcome.scores)
    return scores[0] if len(scores) == 1 else scores


def _refuse(point: Point) -> float:
    tell(f"Point {point.number} is invalid:\n{format_problems(point.problems)}", file=sys.stderr)
    if all(problem.scope == "combination" for problem in point.problems):
        write_invalid_record(point)
    return math.nan


def _execute(point: Point, plan: Plan) -> None:
    warn(plan.warnings)
    write_plans([plan])
    tell(f"Point {point.number}: {plan.folder.path}")
    console = Console()
    record = worker.execute(
        plan.folder, console=console, secret_env=plan.secret_env, expect_fingerprint=plan.fingerprint
    )
    if record["state"] == "interrupted":
        raise KeyboardInterrupt


def finish_alone(folder: Path, settings: SweepSettings) -> int:
    """Show how the points in a sweep's folder rank, and write the results; returns the exit code."""
    codes = [_read_code(RunFolder(file.parent)) for file in sorted(folder.glob("*/run.json"))]
    if not codes:
        return worker.EXIT_NOT_STARTED
    show_ranking(folder, settings, Console())
    return max(codes)


def _read_code(folder: RunFolder) -> int:
    try:
        return worker.exit_code(folder.read_record())
    except RecordError:
        return worker.EXIT_FAILED
