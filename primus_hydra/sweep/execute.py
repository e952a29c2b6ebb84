"""Write the run folders of a sweep and have the pool execute them, rung by rung where there are rungs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from primus_hydra import worker
from primus_hydra.points import Plan, Point
from primus_hydra.progress import Voice
from primus_hydra.runs import Record
from primus_hydra.schema import SweepSettings
from primus_hydra.sweep.halving import ranking_objective
from primus_hydra.sweep.job import Job, Policy, Trials
from primus_hydra.sweep.judge import Standing, Verdict
from primus_hydra.sweep.ladder import Ladder, climb
from primus_hydra.sweep.live import SweepView
from primus_hydra.sweep.pool import run_jobs
from primus_hydra.sweep.records import read_if_there, write_plans
from primus_hydra.sweep.slots import Slot


@dataclass(kw_only=True, slots=True)
class Execution:
    """How the runs of one call are executed, and what the run folders will not tell afterwards."""

    settings: SweepSettings
    slots: Sequence[Slot]
    console: Console
    differences: Mapping[int | None, str]
    """Number of the point -> what people call it."""
    completed: Sequence[tuple[str, Record]]
    """Name and record of the runs that were complete before."""
    trials: Trials | None = None
    """Of a search."""
    began: bool = False
    """Whether the pool has been at work."""
    interrupted: bool = False
    failed: bool = False
    """Whether a run failed that counts for `sweep.fail_fast`."""

    @property
    def goes_on(self) -> bool:
        """Whether anything more is to be started."""
        return not self.interrupted and not (self.failed and self.settings.fail_fast)

    def run(self, plans: Sequence[Plan]) -> bool:
        """Write all folders, then execute them: whatever happens, the folders say what is missing.

        Returns:
            Whether the sweep goes on.

        Raises:
            OSError, RunFolderError: a folder cannot be written; none of these runs was started.
        """
        if not plans:
            return True
        write_plans(plans)
        self.began = True
        policy = Policy(
            objective=ranking_objective(self.settings),
            retries=self.settings.retries,
            fail_fast=self.settings.fail_fast,
            stop_below=self.settings.stop_below,
        )
        with SweepView(Voice(self.console)) as view:
            ended = run_jobs(
                [self._job(plan) for plan in plans],
                slots=self.slots,
                policy=policy,
                view=view,
                completed=self.completed,
                trials=self.trials,
            )
        records = [read_if_there(plan.folder) for plan in plans]
        self.interrupted = ended.interrupted
        self.failed = bool(ended.refused) or any(
            record is None or worker.exit_code(record) == worker.EXIT_FAILED for record in records
        )
        return self.goes_on

    def _job(self, plan: Plan) -> Job:
        return Job(
            folder=plan.folder,
            fingerprint=plan.fingerprint,
            differs=name_run(plan, self.differences),
            secret_env=plan.secret_env,
        )


def name_run(run: Plan | Point, differences: Mapping[int | None, str]) -> str:
    """What people call a run: `3 remat_policy=full`, `3 remat_policy=full, repeat 2`."""
    again = f", repeat {run.repeat}" if run.repeat > 1 else ""
    return f"{run.number} {differences[run.number]}{again}"


def execute_standings(execution: Execution, standings: Sequence[Standing], ladder: Ladder | None) -> None:
    """Run what is to run; with rungs, only as far as each point gets.

    Raises:
        OSError, RunFolderError: something cannot be written; what ran until then is on record.
    """
    ready = [standing.run.plan for standing in standings if standing.starts and standing.run.plan]
    if ladder is None:
        execution.run(ready)
        return
    dropped = ladder.dropped()
    compared = [
        standing.run.plan
        for standing in standings
        if standing.run.plan is not None
        and (standing.starts or standing.verdict is Verdict.DONE or standing.run.folder.path.name in dropped)
    ]
    climb(ladder, compared, execution.run)
