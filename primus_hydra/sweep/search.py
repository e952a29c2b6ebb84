"""Search instead of a grid: Hydra's Optuna sweeper, with our objectives and a study that survives a kill."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from hydra.core.override_parser.types import RangeSweep
from hydra.types import HydraContext, TaskFunction
from hydra_plugins.hydra_optuna_sweeper._impl import OptunaSweeperImpl
from omegaconf import DictConfig
from optuna.trial import FrozenTrial, Trial, TrialState

from primus_hydra.errors import Problem, SweepRefused
from primus_hydra.grammar import try_parse
from primus_hydra.hydra_job import choose_sweep_dir
from primus_hydra.objective import choose_objective
from primus_hydra.tell import tell

_DATABASE = "search.db"
_INTERRUPTED = "interrupted"
"""Mark of a trial whose start died: it has no result and counts for nothing."""


def search(
    settings: Mapping[str, Any],
    context: HydraContext,
    task_function: TaskFunction,
    config: DictConfig,
    arguments: Sequence[str],
) -> None:
    """Run what is missing of the study's `n_trials`; told trials of earlier starts count, failed ones too.

    A trial that was in flight when an earlier start died is taken up again, in its own run folder. A trial without a
    finite figure (refused, failed, stopped early) is told to Optuna as failed, never as a number.

    Args:
        settings: see `schema.SearchSettings`; beside them `sampler`, instantiated.
        context: as Hydra gave it to our sweeper, and so the next two.
        task_function: of the program.
        config: what Hydra composed from the command line.
        arguments: its overrides.

    Raises:
        SweepRefused: the study in the folder searches another space, or by other objectives.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    folder = choose_sweep_dir(config)
    directions = list(_list_directions(config))
    study = _open_study(settings, folder, directions)
    told, interrupted = _sort_trials(study)
    _take_up(study, interrupted)
    sweeper = OptunaSweeperImpl(
        sampler=settings["sampler"],
        direction=directions,
        storage=_storage(settings, folder),
        study_name=settings["study_name"],
        n_trials=max(0, settings["n_trials"] - len(told)),
        n_jobs=config.sweep.max_parallel,
        max_failure_rate=1.0,
        search_space=None,
        custom_search_space=settings["custom_search_space"],
        params=settings["params"],
    )
    sweeper.setup(hydra_context=context, task_function=task_function, config=config)
    sweeper.job_idx = len(told)
    if told:
        tell(f"Study {study.study_name}: {len(told)} of {settings['n_trials']} trials are told already.")
    try:
        sweeper.sweep(list(map(_end_ranges_where_hydra_does, arguments)))
    except ValueError as error:
        if all(trial.state is not TrialState.COMPLETE for trial in study.get_trials()) and not _is_refusal(error):
            return  # Optuna has no best trial to name; the sweep's table says why each one failed
        raise SweepRefused([_explain(error, folder)]) from error


def _list_directions(config: DictConfig) -> Iterator[str]:
    for index, name in enumerate(config.sweep.objective):
        direction = config.sweep.direction.name if index == 0 and config.sweep.direction else None
        yield "maximize" if choose_objective(name, direction).maximize else "minimize"


def _storage(settings: Mapping[str, Any], folder: Path) -> str:
    return settings["storage"] or f"sqlite:///{folder / _DATABASE}"


def _open_study(settings: Mapping[str, Any], folder: Path, directions: Sequence[str]) -> optuna.Study:
    folder.mkdir(parents=True, exist_ok=True)
    name, storage = settings["study_name"], _storage(settings, folder)
    try:
        return optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
    except ValueError as error:
        what = f"The study {name} in {storage} was begun with other objectives: {error}"
        fix = "Take another sweep.dir, or the objectives that it began with."
        raise SweepRefused([Problem(what=what, fix=fix)]) from error


def _sort_trials(study: optuna.Study) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
    """Trials that have their result, a failure included; trials that an earlier start left in flight."""
    trials = study.get_trials(deepcopy=False)
    told = [trial for trial in trials if trial.state.is_finished() and _INTERRUPTED not in trial.user_attrs]
    return told, [trial for trial in trials if trial.state is TrialState.RUNNING]


def _take_up(study: optuna.Study, interrupted: Sequence[FrozenTrial]) -> None:
    """Let the next trials have the parameters of those that were in flight; Optuna cannot go on with a trial itself."""
    for trial in interrupted:
        Trial(study, trial._trial_id).set_user_attr(_INTERRUPTED, True)
        study.tell(trial.number, state=TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)


def _end_ranges_where_hydra_does(text: str) -> str:
    """`range(2,6,2)` is 2 and 4 to Hydra; its Optuna sweeper 1.3.0 hands the end to Optuna, which takes it in."""
    override = try_parse(text)
    value = override.value() if override is not None and override.is_range_sweep() else None
    if not isinstance(value, RangeSweep) or override is None or value.shuffle:
        return text
    last = list(value.range())[-1]
    return f"{override.get_key_element()}=range({value.start},{last},{value.step})"


def _is_refusal(error: ValueError) -> bool:
    return "value space" in str(error) or "distribution" in str(error)


def _explain(error: ValueError, folder: Path) -> Problem:
    return Problem(
        what=f"Optuna refuses to go on with the study in {folder}: {error}",
        fix="A study keeps the values it began with: take another sweep.dir, or search the same values.",
    )
