"""What Hydra knows about the job that it runs: its overrides, its choices, where it is to lie."""

import copy
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from primus_hydra.errors import ConfigError, Problem
from primus_hydra.naming import default_run_dir, default_sweep_dir, sweep_point_dir
from primus_hydra.redaction import SECRET_KEYS, is_secret_name


def list_overrides() -> list[str]:
    """The job's overrides as Hydra got them; an interpolation in one is not resolved."""
    overrides = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
    return [str(text) for text in overrides or []]


def list_choices() -> dict[str, str]:
    """Config group -> the preset that was chosen, Hydra's own groups left out."""
    choices = HydraConfig.get().runtime.choices
    return {group: str(choice) for group, choice in choices.items() if not group.startswith("hydra")}


def sweep_position() -> int | None:
    """Position in the sweep, from 0; None for a run of its own."""
    job = HydraConfig.get()
    return int(job.job.num) if job.mode == RunMode.MULTIRUN else None


def choose_run_dir(config: DictConfig, overrides: Sequence[str]) -> Path:
    """Absolute path of the run folder: the one that was asked for, or a unique one.

    Raises:
        ConfigError: what was asked for is no path of this machine.
    """
    number = sweep_position()
    name = "run.dir" if number is None else "sweep.dir"
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
    if number is not None:
        differing = [text for text in overrides if text.partition("=")[0] in _list_swept()] or overrides
        return sweep_point_dir((folder or _default_sweep_dir()).absolute(), number, differing)
    return (folder or default_run_dir(overrides, datetime.now())).absolute()


@cache
def _list_swept() -> frozenset[str]:
    """Names that the command line gives several values to; the others are the same for every point."""
    arguments = [text for text in sys.argv[1:] if "=" in text and not text.startswith("-")]
    overrides = OverridesParser.create().parse_overrides(arguments)
    return frozenset(override.key_or_group for override in overrides if override.is_sweep_override())


@cache
def _default_sweep_dir() -> Path:
    """One folder for all points of the sweep that this process composes."""
    return default_sweep_dir(datetime.now())


def record_composition(config: DictConfig) -> dict[str, str]:
    """Hydra's record of the composition as it lies in `.hydra/`: file name -> text, without credentials."""
    return {
        "config.yaml": OmegaConf.to_yaml(_without_secrets(config)),
        "hydra.yaml": OmegaConf.to_yaml(
            OmegaConf.create({"hydra": OmegaConf.to_container(HydraConfig.get(), resolve=False)})
        ),
        "overrides.yaml": OmegaConf.to_yaml(OmegaConf.create(list_overrides())),
    }


def _without_secrets(config: DictConfig) -> DictConfig:
    """A copy that may be written: credentials that a preset holds are taken out."""
    public = copy.deepcopy(config)
    with open_dict(public):
        for name in SECRET_KEYS & public.keys():
            del public[name]
        for name in [name for name in public.platform.env if is_secret_name(str(name))]:
            del public.platform.env[name]
    return public
