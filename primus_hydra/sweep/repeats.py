"""Every point several times, to see the noise between runs."""

from collections.abc import Sequence
from dataclasses import replace

from primus_hydra.destination import check_checkpoints, check_run_folder
from primus_hydra.export import complete_keys
from primus_hydra.naming import repeat_dir
from primus_hydra.points import Plan, Point
from primus_hydra.runs import RunFolder
from primus_hydra.schema import Action


def repeat_points(points: Sequence[Point]) -> list[Point]:
    """All first runs, then all second ones, and so on: a machine that drifts in the night drifts for all points alike.

    A point that is refused comes once.
    """
    runs = list(points)
    most = max((_num_repeats(point.plan) for point in points if point.plan is not None), default=1)
    for repeat in range(2, most + 1):
        runs += [
            _repeat(point, point.plan, repeat)
            for point in points
            if point.plan is not None and repeat <= _num_repeats(point.plan)
        ]
    return runs


def _num_repeats(plan: Plan) -> int:
    return plan.composition.settings.sweep.repeats


def _repeat(point: Point, plan: Plan, repeat: int) -> Point:
    folder = RunFolder(repeat_dir(point.folder.path, repeat))
    keys, origins = complete_keys(plan.composition, folder)
    again = replace(plan, folder=folder, keys=keys, origins=origins, repeat=repeat)
    problems = []
    if plan.composition.settings.action in (Action.train, Action.export):
        problems = check_run_folder(folder, again.identity)
        problems += check_checkpoints(keys, again.identity, frozenset(plan.composition.settings.run.accept))
    refused = tuple(problem for problem in problems if problem.severity == "refuse")
    return replace(point, folder=folder, repeat=repeat, plan=None if refused else again, problems=refused)
