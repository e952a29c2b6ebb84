"""All points of a sweep, composed and planned."""

from collections.abc import Sequence
from pathlib import Path

from hydra.types import HydraContext
from omegaconf import DictConfig

from primus_hydra.destination import check_sweep_folder
from primus_hydra.errors import ConfigError, SweepRefused
from primus_hydra.hydra_job import HydraJob, choose_sweep_dir, record_composition
from primus_hydra.origins import preset_folders
from primus_hydra.overrides import CommandLine, rewrite_override
from primus_hydra.planning import plan_point
from primus_hydra.points import Point
from primus_hydra.runs import RunFolder
from primus_hydra.schema import Action
from primus_hydra.sweep.composer import Composer, open_composer, without_hydra


def compose_points(
    context: HydraContext, master: DictConfig, job_overrides: Sequence[Sequence[str]], first_number: int
) -> list[Point]:
    """Compose and plan points of a sweep; nothing is written.

    Raises:
        SweepRefused: the sweep's folder cannot be written, and something is to be written.

    Args:
        context: holds the config loader.
        master: what Hydra composed from the command line.
        job_overrides: of each point, from whatever sweeper; names and values are checked like typed ones.
        first_number: position of the first one in the sweep.
    """
    _check_folder(master)
    composer = open_composer(context.config_loader, master)
    line = CommandLine(folders=preset_folders(context.config_loader), multirun=False)
    numbered = enumerate(job_overrides, start=first_number)
    return [_compose_point(composer, overrides, number, line) for number, overrides in numbered]


def _check_folder(master: DictConfig) -> None:
    """Once for all points, where each would say it for its own run folder."""
    if master.action not in (Action.train.value, Action.export.value):
        return
    try:
        folder = choose_sweep_dir(master)
    except ConfigError:  # the points tell it
        return
    if problems := check_sweep_folder(folder):
        raise SweepRefused(problems)


def _compose_point(composer: Composer, overrides: Sequence[str], number: int, line: CommandLine) -> Point:
    rewritten = [rewrite_override(text, line) for text in overrides]
    problems = tuple(problem for _, problem in rewritten if problem is not None)
    texts = tuple(text for text, _ in rewritten)
    try:
        if problems:
            raise ConfigError(problems)
        template = composer.find_template(texts)
        job = HydraJob(
            config=composer.compose(texts, number),
            overrides=texts,
            choices=template.choices,
            origins={**template.origins, **composer.trace_values(texts, template)},
            number=number,
            record=lambda: _record(composer, texts, number),
        )
    except ConfigError as error:
        typed = tuple(text.lstrip("+") for text in texts)
        return Point(number=number, overrides=typed, folder=RunFolder(Path.cwd()), plan=None, problems=error.problems)
    return plan_point(job)


def _record(composer: Composer, overrides: Sequence[str], number: int) -> dict[str, str]:
    whole = composer.compose_whole(overrides, number)
    hydra = whole.hydra
    return record_composition(without_hydra(whole), hydra, overrides)
