"""What is wrong with a sweep as a whole, although every point of it is fine."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from primus_hydra.destination import checkpoint_owner
from primus_hydra.errors import Problem
from primus_hydra.points import Plan
from primus_hydra.sweep.halving import check_rungs


def check_sweep(plans: Sequence[Plan], *, is_search: bool) -> list[Problem]:
    """Everything at once; empty where nothing is wrong.

    Args:
        plans: of all runs, repeats included; the settings of the first count.
        is_search: whether a sweeper that needs results chose the points.
    """
    if not plans:
        return []
    settings = plans[0].composition.settings.sweep
    problems = [*check_rungs(plans), *_check_checkpoints(plans)]
    if settings.rungs and is_search:
        what = "sweep.rungs compares all points at the same step, and a search starts them one after the other."
        problems.append(Problem(what=what, fix="Leave sweep.rungs out, or use sweep.stop_below."))
    return problems


def _check_checkpoints(plans: Sequence[Plan]) -> list[Problem]:
    """MaxText continues from whatever checkpoint it finds, so no two runs may share a place for them."""
    owners: defaultdict[Path, list[Plan]] = defaultdict(list)
    for plan in {plan.folder: plan for plan in plans}.values():
        directory = checkpoint_owner(plan.keys)
        if directory is not None:
            owners[directory].append(plan)
    return [
        Problem(
            what=f"{len(sharing)} runs of this sweep would write their checkpoints into {directory}, and each would "
            "continue from the checkpoint of another.",
            fix="Leave run_name out (each run then has its own), or set enable_checkpointing=false.",
            origin=sharing[0].origins["run_name"],
        )
        for directory, sharing in owners.items()
        if len(sharing) > 1
    ]
