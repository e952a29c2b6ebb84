"""The job that Hydra composes: one run, or one point of a sweep; where it is to lie and how it is recorded."""

import copy
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from primus_hydra.errors import ConfigError, Problem
from primus_hydra.grammar import typed_name
from primus_hydra.naming import default_run_dir, default_sweep_dir, sweep_point_dir
from primus_hydra.omegaconf_yaml import format_yaml
from primus_hydra.origins import Origin, trace_files, trace_overrides
from primus_hydra.redaction import SECRET_KEYS, is_secret_name

_SWEEP_VARIABLE = "PRIMUS_HYDRA_SWEEP"
"""What all processes of one sweep must agree on; a launcher may compose points in processes of its own."""
_NOT_THE_POINT = re.compile(r"(sweep|hydra|explain|run(?!\.trainer))\.|hydra/|action=")
"""Starts of overrides that say how runs are treated, and so do not tell points apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HydraJob:
    """One configuration as Hydra composed it."""

    config: DictConfig
    """The task configuration, without Hydra's own node."""
    overrides: tuple[str, ...]
    """As Hydra got them, without those of its own settings."""
    choices: Mapping[str, str]
    """Config group -> the preset that was chosen, Hydra's own groups left out."""
    origins: Mapping[str, Origin]
    """Dotted key -> where it was set last."""
    number: int | None
    """Position in the sweep, from 0; None for a run of its own."""
    record: Callable[[], dict[str, str]]
    """Makes Hydra's record of the composition: file name -> text. It takes 10 ms, and only written folders need it."""

    @property
    def typed(self) -> tuple[str, ...]:
        """The overrides without `+`."""
        return tuple(text.lstrip("+") for text in self.overrides)


def read_job(config: DictConfig) -> HydraJob:
    """The job that Hydra runs at this moment, from inside its task function.

    Args:
        config: the task configuration that Hydra handed over.
    """
    hydra = cast(DictConfig, copy.deepcopy(HydraConfig.get()))  # it may hold another job's when the folder is written
    overrides = list_overrides(hydra.overrides.task)
    choices = task_choices(hydra.runtime.choices)
    loader = GlobalHydra.instance().config_loader()
    return HydraJob(
        config=config,
        overrides=tuple(overrides),
        choices=choices,
        origins=trace_files(loader, str(hydra.job.config_name), overrides, choices) | trace_overrides(overrides),
        number=int(hydra.job.num) if hydra.mode == RunMode.MULTIRUN else None,
        record=lambda: record_composition(config, hydra, overrides),
    )


def list_overrides(node: ListConfig) -> list[str]:
    """Overrides as Hydra keeps them; an interpolation in one of them is not resolved."""
    return [str(text) for text in OmegaConf.to_container(node, resolve=False) or []]


def task_choices(choices: Mapping[str, object]) -> dict[str, str]:
    """Config group -> the preset that was chosen, Hydra's own groups left out."""
    return {group: str(choice) for group, choice in choices.items() if not group.startswith("hydra")}


def announce_sweep(overrides: Iterable[str]) -> None:
    """Decide the sweep's default folder, and which overrides all points share; processes started later inherit both.

    Args:
        overrides: those that give one value to the whole sweep, as typed.
    """
    shared = sorted({typed_name(text) for text in overrides})
    folder = default_sweep_dir(datetime.now()).absolute()
    os.environ[_SWEEP_VARIABLE] = json.dumps({"dir": str(folder), "shared": shared})


def shared_names() -> frozenset[str]:
    """Names of the overrides that give one value to the whole sweep."""
    return frozenset(_announced()["shared"])


def choose_run_dir(job: HydraJob) -> Path:
    """Absolute path of the run folder: the one that was asked for, or a unique one.

    Raises:
        ConfigError: what was asked for is no path of this machine.
    """
    if job.number is None:
        return _absolute(_chosen_folder(job.config, "run.dir") or default_run_dir(job.typed, datetime.now()))
    differing = _what_differs(job, shared_names())
    return sweep_point_dir(choose_sweep_dir(job.config), job.number, differing)


def choose_sweep_dir(config: DictConfig) -> Path:
    """Absolute path of the sweep's folder: the one that was asked for, or a unique one.

    Raises:
        ConfigError: what was asked for is no path of this machine.
    """
    return _absolute(_chosen_folder(config, "sweep.dir") or Path(_announced()["dir"]))


def _absolute(folder: Path) -> Path:
    """Without `..` too: the path names the run, and a run that is taken up again has to have its name again."""
    return Path(os.path.abspath(folder))  # noqa: PTH100


def _announced() -> dict[str, Any]:
    if _SWEEP_VARIABLE not in os.environ:
        announce_sweep([])
    found: dict[str, Any] = json.loads(os.environ[_SWEEP_VARIABLE])
    return found


def _chosen_folder(config: DictConfig, name: str) -> Path | None:
    try:
        chosen = OmegaConf.select(config, name)
        folder = Path(chosen).expanduser() if chosen else None
        if folder is not None:
            folder.exists()  # raises OSError for a name that no file system takes
    except (OmegaConfBaseException, OSError, RuntimeError) as error:
        raise ConfigError([Problem(what=f"{name} cannot be used: {str(error).splitlines()[0]}")]) from error
    if chosen and "://" in chosen:
        what = f"{name}={chosen} is not a folder of this machine."
        raise ConfigError([Problem(what=what, fix="Runs are recorded locally; base_output_directory may be remote.")])
    return folder


def _what_differs(job: HydraJob, shared: Collection[str]) -> list[str]:
    """Overrides that tell this point from the sweep's others; all that describe it where none does."""
    differing = [text for text in job.typed if typed_name(text) not in shared]
    return differing or [text for text in job.typed if not _NOT_THE_POINT.match(text)]


def record_composition(config: DictConfig, hydra: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """Hydra's record of the composition as it lies in `.hydra/`: file name -> text, without credentials.

    Args:
        config: the task configuration.
        hydra: Hydra's own node.
        overrides: of the task, as Hydra got them.
    """
    node = OmegaConf.to_container(hydra, resolve=False, enum_to_str=True)
    return {
        "config.yaml": format_yaml(_without_secrets(config)),
        "hydra.yaml": format_yaml({"hydra": node}),
        "overrides.yaml": format_yaml(list(overrides)),
    }


def _without_secrets(config: DictConfig) -> dict[str, Any]:
    """What may be written: credentials that a preset holds are taken out."""
    content: Any = OmegaConf.to_container(config, resolve=False, enum_to_str=True)
    env = content["platform"]["env"]
    content["platform"]["env"] = {name: value for name, value in env.items() if not is_secret_name(str(name))}
    return {name: value for name, value in content.items() if name not in SECRET_KEYS}
