"""Search instead of a grid: Hydra's Optuna sweeper, with our objectives and a study that survives a kill."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from hydra.core.override_parser.types import RangeSweep
from hydra.types import HydraContext, TaskFunction
from hydra_plugins.hydra_optuna_sweeper._impl import OptunaSweeperImpl
from omegaconf import DictConfig
from optuna.trial import Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from primus_hydra.errors import ConfigError, Problem, SweepRefused
from primus_hydra.grammar import try_parse
from primus_hydra.hydra_job import choose_sweep_dir
from primus_hydra.objective import choose_objective
from primus_hydra.sweep.launch import SweepEnded, hold_sweep
from primus_hydra.tell import tell
from primus_hydra.worker import EXIT_NOT_STARTED

_DATABASE = "search.db"
_NONE_COMPLETED = ("No trials are completed yet.", "Record does not exist.")
_ANOTHER_SPACE = ("dynamic value space", "different distribution")
"""What Optuna 2.10 says when a study has seen other values of a parameter."""
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
        SweepRefused: the study in the folder searches another space or by other objectives, its database cannot be
            used, or a grid was given.
        SweepEnded: nothing could be started, or the sweep was stopped.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger(OptunaSweeperImpl.__module__).setLevel(logging.CRITICAL)  # the sweep's table tells failures
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    folder, directions = _choose_folder(config), list(_list_directions(config))
    _check(settings, config)
    hold_sweep(folder)
    database = folder / _DATABASE
    is_new = not database.exists()
    try:
        study = _open_study(settings, folder, directions)
        told = _take_up_interrupted(study)
        sweeper = OptunaSweeperImpl(
            sampler=settings["sampler"],
            direction=directions,
            storage=_storage(settings, folder),
            study_name=settings["study_name"],
            n_trials=max(0, settings["n_trials"] - told),
            n_jobs=config.sweep.max_parallel,
            max_failure_rate=1.0,
            search_space=None,
            custom_search_space=settings["custom_search_space"],
            params=settings["params"],
        )
        sweeper.setup(hydra_context=context, task_function=task_function, config=config)
        sweeper.job_idx = told
        if told:
            tell(f"Study {study.study_name}: {told} of {settings['n_trials']} trials are told already.")
        sweeper.sweep(list(map(_end_ranges_where_hydra_does, arguments)))
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
        what = f"The study's database {database} cannot be used: {str(error).splitlines()[0]}"
        raise SweepRefused(
            [Problem(what=what, fix="What ran is in the run folders; free the file or its disk.")]
        ) from error
    except ValueError as error:
        if str(error) in _NONE_COMPLETED:
            return  # Optuna has no best trial to name; the sweep's table says why each one failed
        if not any(words in str(error) for words in _ANOTHER_SPACE):
            raise
        what = f"Optuna refuses to go on with the study in {folder}: {error}"
        fix = "A study keeps the values it began with: take another sweep.dir, or search the same values."
        raise SweepRefused([Problem(what=what, fix=fix)]) from error
    except SweepEnded as ended:
        if is_new and ended.code == EXIT_NOT_STARTED:
            database.unlink(missing_ok=True)  # no trial ran: a corrected command is a new study
        raise


def _check(settings: Mapping[str, Any], config: DictConfig) -> None:
    problems = []
    if not isinstance(settings["n_trials"], int) or settings["n_trials"] < 1:
        what = f"hydra.sweeper.n_trials={settings['n_trials']} is no number of trials."
        problems.append(Problem(what=what, allowed="Allowed: a whole number, at least 1."))
    if given := [f"sweep.{name}" for name in ("grid", "zip", "points") if config.sweep[name]]:
        what = f"{' and '.join(given)} would be ignored: Optuna searches what the command line gives several values to."
        problems.append(Problem(what=what, fix="Leave hydra/sweeper=optuna out, or type the values."))
    if problems:
        raise SweepRefused(problems)


def _choose_folder(config: DictConfig) -> Path:
    try:
        return choose_sweep_dir(config)
    except ConfigError as error:
        raise SweepRefused(error.problems) from error


def _list_directions(config: DictConfig) -> Iterator[str]:
    for index, name in enumerate(config.sweep.objective):
        direction = config.sweep.direction.name if index == 0 and config.sweep.direction else None
        yield choose_objective(name, direction).direction


def _storage(settings: Mapping[str, Any], folder: Path) -> str:
    return settings["storage"] or f"sqlite:///{folder / _DATABASE}"


def _open_study(settings: Mapping[str, Any], folder: Path, directions: Sequence[str]) -> optuna.Study:
    name, storage = settings["study_name"], _storage(settings, folder)
    try:
        return optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
    except ValueError as error:
        what = f"The study {name} in {storage} was begun with other objectives: {error}"
        fix = "Take another sweep.dir, or the objectives that it began with."
        raise SweepRefused([Problem(what=what, fix=fix)]) from error


def _take_up_interrupted(study: optuna.Study) -> int:
    """Let the next trials have the parameters of those that an earlier start left in flight.

    Optuna cannot go on with such a trial itself.

    Returns:
        The number of trials that have their result, a failure included.
    """
    trials = study.get_trials(deepcopy=False)
    for trial in (trial for trial in trials if trial.state is TrialState.RUNNING):
        Trial(study, trial._trial_id).set_user_attr(_INTERRUPTED, True)
        study.tell(trial.number, state=TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)
    return sum(trial.state.is_finished() and _INTERRUPTED not in trial.user_attrs for trial in trials)


def _end_ranges_where_hydra_does(text: str) -> str:
    """`range(2,6,2)` is 2 and 4 to Hydra; its Optuna sweeper 1.3.0 hands the end to Optuna, which takes it in."""
    override = try_parse(text)
    value = override.value() if override is not None and override.is_range_sweep() else None
    if not isinstance(value, RangeSweep) or override is None or value.shuffle:
        return text
    last = list(value.range())[-1]
    return f"{override.get_key_element()}=range({value.start},{last},{value.step})"
