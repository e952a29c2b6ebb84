"""The Hydra application: a composed configuration becomes a planned point, a sweep's points are launched."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from primus_hydra.errors import Problem, SweepRefused
from primus_hydra.hydra_job import choose_sweep_dir, read_job
from primus_hydra.paths import conf_dir
from primus_hydra.planning import plan_point
from primus_hydra.points import Point
from primus_hydra.resolvers import register_resolvers
from primus_hydra.schema import SweepSettings, register

if TYPE_CHECKING:
    from primus_hydra.sweep.alone import Score
    from primus_hydra.sweep.launch import Outcome

_GRIDS = ("grid", "basic")
"""Sweepers that know all points before the first runs; any other one searches."""


@dataclass(kw_only=True, slots=True)
class Session:
    """What this process has done so far; Hydra's tasks, launchers and sweepers cannot return it."""

    command_line_problems: tuple[Problem, ...] = ()
    """What is wrong with the command line itself; told together with what is wrong with the points."""
    points: list[Point] = field(default_factory=list)
    """What Hydra's task planned: a run of its own; points of a sweep only under another launcher than ours."""
    launched: bool = False
    """Whether our launcher was given points."""
    sweep: DictConfig | None = None
    """What Hydra composed for a sweep as a whole, once our sweeper has it."""

    @property
    def is_sweep(self) -> bool:
        """Whether Hydra ran points of a sweep."""
        return self.launched or self.sweep is not None or any(point.number is not None for point in self.points)


session = Session()

register()
register_resolvers()


class PointFailed(Exception):
    """A point has no score: why, in one sentence. What searches for the best point must not take that for a figure."""


class PointReturn(JobReturn):
    """What Hydra's sweepers read. Reading a failure raises it, without the line that Hydra would print: it was told."""

    @property
    def return_value(self) -> Any:
        """The score; one for each objective where there are several."""
        if self.status is JobStatus.FAILED:
            raise self._return_value
        return self._return_value

    @return_value.setter
    def return_value(self, value: Any) -> None:
        self._return_value = value


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def compose(config: DictConfig) -> "Score | None":
    """Hydra's task: plan a run of its own; plan and execute a point of a sweep that another launcher than ours runs."""
    point = plan_point(read_job(config))
    session.points.append(point)
    if point.number is None or session.command_line_problems:
        return None
    from primus_hydra.sweep.alone import run_alone

    return run_alone(point)


def launch(
    context: HydraContext, master: DictConfig, job_overrides: Sequence[Sequence[str]], first_number: int
) -> list[JobReturn]:
    """Plan points of a sweep, run them, and return their scores; the body of our launcher.

    Args:
        context: holds the config loader.
        master: what Hydra composed from the command line.
        job_overrides: of each point, as the sweeper wants them.
        first_number: position of the first one in the sweep.

    Raises:
        SweepRefused: the command line is wrong.
        SweepEnded: nothing was started, or nothing is to be run.
    """
    # Imported here: a run of its own starts without what a sweep needs.
    from primus_hydra.sweep.compose import compose_points
    from primus_hydra.sweep.launch import launch_points

    composed = compose_points(context, master, job_overrides, first_number)
    if session.command_line_problems:
        found = dict.fromkeys(problem for point in composed for problem in point.problems)
        raise SweepRefused([*session.command_line_problems, *found])
    session.launched = True
    is_search = master.hydra.runtime.choices["hydra/sweeper"] not in _GRIDS
    num_trials = OmegaConf.select(master, "hydra.sweeper.n_trials") if is_search else None
    outcomes = launch_points(composed, is_search=is_search, num_trials=num_trials)
    return [_return(list(overrides), outcome) for overrides, outcome in zip(job_overrides, outcomes, strict=True)]


def run_grid(sweeper: BasicSweeper, arguments: Sequence[str]) -> Sequence[Sequence[JobReturn]]:
    """Launch every point of a grid at once; the body of our sweeper.

    Args:
        sweeper: Hydra has set it up.
        arguments: the command line's overrides, as Hydra got them.

    Raises:
        SweepRefused: the grid is wrong, or the launcher cannot do what the settings ask for.
    """
    from primus_hydra.sweep.alone import check_settings
    from primus_hydra.sweep.jobs import list_jobs

    assert sweeper.hydra_context
    assert sweeper.config
    assert sweeper.launcher
    session.sweep = sweeper.config
    jobs = list_jobs(sweeper.hydra_context.config_loader, sweeper.config, arguments, sweeper.params)
    if problems := check_settings(sweeper.config):
        raise SweepRefused(problems)
    return [sweeper.launcher.launch(jobs, initial_job_idx=0)]


def run_search(
    settings: Mapping[str, Any],
    context: HydraContext,
    task_function: TaskFunction,
    config: DictConfig,
    arguments: Sequence[str],
) -> None:
    """Run trials until the study has what it lacks; the body of our Optuna sweeper, see `sweep.search.search`."""
    from primus_hydra.sweep.search import search

    session.sweep = config
    search(settings, context, task_function, config, arguments)


def finish() -> int:
    """When Hydra has returned from a sweep: show how its points rank; returns the exit code."""
    from primus_hydra.sweep.alone import finish_alone
    from primus_hydra.sweep.launch import finish_sweep

    if session.launched:
        return finish_sweep()
    planned = [point.plan for point in session.points if point.plan is not None]
    if session.sweep is not None:
        return finish_alone(
            choose_sweep_dir(session.sweep), cast(SweepSettings, OmegaConf.to_object(session.sweep.sweep))
        )
    return finish_alone(planned[0].folder.path.parent, planned[0].composition.settings.sweep) if planned else 0


def _return(overrides: list[str], outcome: "Outcome") -> JobReturn:
    """An outcome in the form that Hydra's sweepers read."""
    scores = [math.nan if score is None else score for score in outcome.scores]
    if any(map(math.isnan, scores)):
        record = outcome.record or {}
        reason = record.get("reason") or " ".join(problem.what for problem in outcome.point.problems)
        failed = PointFailed(f"point {outcome.point.number} is {record.get('state', 'invalid')}: {reason}")
        return PointReturn(overrides=overrides, status=JobStatus.FAILED, _return_value=failed)
    value = scores[0] if len(scores) == 1 else tuple(scores)
    return PointReturn(overrides=overrides, status=JobStatus.COMPLETED, _return_value=value)
