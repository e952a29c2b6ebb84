"""The flow: compose -> flatten -> check -> export -> run. Hydra composes; each step is one call."""

import copy
import importlib.metadata
import os
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from primus_hydra import destination
from primus_hydra.environment import Environment, layer_environment
from primus_hydra.errors import ConfigError, Problem
from primus_hydra.export import Batch, Plan, Point, check_conflicts, check_reserved, complete_keys
from primus_hydra.flatten import Composition, flatten
from primus_hydra.layers import read_image_environment
from primus_hydra.maxtext.keys import installed_version, package_dir
from primus_hydra.maxtext.model_files import load_defaults, load_model_keys
from primus_hydra.mesh import plan_mesh
from primus_hydra.naming import default_run_dir, default_sweep_dir, sweep_point_dir
from primus_hydra.origins import Origin, trace_origins
from primus_hydra.paths import conf_dir
from primus_hydra.platforms import detect_machine
from primus_hydra.redaction import SECRET_KEYS, is_secret_name
from primus_hydra.resolvers import register_resolvers
from primus_hydra.rules import RuleContext, evaluate
from primus_hydra.runs import RunFolder
from primus_hydra.schema import Action, register
from primus_hydra.xla_flags import parse_flags
from primus_hydra.xla_probe import probe_flags

points: list[Point] = []
"""What this process composed, in Hydra's order: one entry, or one for each point of a sweep."""

register()
register_resolvers()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def compose(config: DictConfig) -> None:
    """Hydra's task: turn one composed configuration into a plan (or the problems with it)."""
    job = HydraConfig.get()
    overrides = tuple(text.lstrip("+") for text in _typed_overrides())
    folder = RunFolder(Path.cwd())
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    try:
        folder = RunFolder(_choose_run_dir(config, overrides))
        plan = make_plan(config, folder)
    except ConfigError as error:
        problems = error.problems
    number = int(job.job.num) if job.mode == RunMode.MULTIRUN else None
    points.append(Point(number=number, overrides=overrides, folder=folder, plan=plan, problems=problems))


def make_plan(config: DictConfig, folder: RunFolder) -> Plan:
    """Flatten and check a configuration; nothing is written.

    Args:
        config: the task configuration, without Hydra's own node.
        folder: where the run will lie.

    Raises:
        ConfigError: everything that is wrong, all at once.
    """
    job = HydraConfig.get()
    overrides = _typed_overrides()
    choices = {group: str(choice) for group, choice in job.runtime.choices.items() if not group.startswith("hydra")}
    origins = trace_origins(GlobalHydra.instance().config_loader(), str(job.job.config_name), overrides, choices)
    composition, problems = flatten(config, origins, Path.cwd())
    keys, key_origins = complete_keys(composition, folder)
    environment, found = _layer_environment(composition, origins)
    problems += found
    effective = {**load_defaults(), **load_model_keys(str(keys.get("model_name", "default"))), **keys}
    platform = composition.settings.platform
    mesh = plan_mesh(
        effective,
        devices_per_node=platform.devices_per_node,
        nodes=platform.nodes,
        jax_platform=platform.jax_platform,
    )
    problems += _check(composition, folder, keys, effective, key_origins, environment)
    refused = [problem for problem in problems if problem.severity == "refuse"]
    if refused or environment is None:
        raise ConfigError(refused)
    return Plan(
        folder=folder,
        keys=keys,
        origins=key_origins,
        composition=composition,
        environment=environment,
        batch=Batch(
            num_devices=mesh.num_devices,
            num_sequences=mesh.global_batch_size,
            sequence_length=int(effective["max_target_length"]),
        ),
        warnings=tuple(problems),
        overrides=tuple(text.lstrip("+") for text in overrides),
        choices=choices,
        hydra_files={
            "config.yaml": OmegaConf.to_yaml(_without_secrets(config)),
            "hydra.yaml": OmegaConf.to_yaml(OmegaConf.create({"hydra": OmegaConf.to_container(job, resolve=False)})),
            "overrides.yaml": OmegaConf.to_yaml(OmegaConf.create(overrides)),
        },
    )


def _typed_overrides() -> list[str]:
    """The task's overrides as typed: an interpolation in one is not resolved."""
    return [str(text) for text in OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)]  # type: ignore[union-attr]


def _without_secrets(config: DictConfig) -> DictConfig:
    """A copy that may be written: credentials that a preset holds are taken out."""
    public = copy.deepcopy(config)
    with open_dict(public):
        for name in SECRET_KEYS & public.keys():
            del public[name]
        for name in [name for name in public.platform.env if is_secret_name(str(name))]:
            del public.platform.env[name]
    return public


def _layer_environment(
    composition: Composition, origins: dict[str, Origin]
) -> tuple[Environment | None, list[Problem]]:
    try:
        environment = layer_environment(
            composition.settings.platform,
            explicit_env=_explicit(origins, "platform.env."),
            explicit_flags=_explicit(origins, "platform.xla_flags."),
            inherited=os.environ,
            image=read_image_environment(),
            maxtext_assets=package_dir() / "assets",
        )
    except ConfigError as error:
        return None, list(error.problems)
    return environment, list(environment.notes)


def _choose_run_dir(config: DictConfig, overrides: Sequence[str]) -> Path:
    """Absolute path of the run folder: the one that was asked for, or a unique one.

    Raises:
        ConfigError: what was asked for is no path of this machine.
    """
    job = HydraConfig.get()
    name = "sweep.dir" if job.mode == RunMode.MULTIRUN else "run.dir"
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
    if job.mode == RunMode.MULTIRUN:
        return sweep_point_dir((folder or _default_sweep_dir()).absolute(), int(job.job.num), overrides)
    return (folder or default_run_dir(overrides, datetime.now())).absolute()


@cache
def _default_sweep_dir() -> Path:
    """One folder for all points of the sweep that this process composes."""
    return default_sweep_dir(datetime.now())


def _check(
    composition: Composition,
    folder: RunFolder,
    keys: dict[str, object],
    effective: dict[str, object],
    origins: dict[str, str],
    environment: Environment | None,
) -> list[Problem]:
    """Everything that rules, XLA flags and the places to write to have against a configuration."""
    settings = composition.settings
    if settings.action is Action.explain:
        return []
    context = RuleContext(
        keys=keys,
        effective=effective,
        origins=origins,
        platform=settings.platform,
        machine=detect_machine(),
        maxtext_version=installed_version(),
        jax_version=_installed_jax(),
        action=settings.action.value,
        env=os.environ,
        run_dir=folder.path,
        custom_trainer=settings.run.trainer is not None,
        accept=frozenset(settings.run.accept),
    )
    found = [*evaluate(context, other_rules=destination.RULES), *check_conflicts(keys, origins)]
    found += check_reserved(composition)
    if environment is not None:
        found += _check_flags(environment)
    if settings.action is not Action.check:
        found += destination.check_run_folder(folder, keys) + destination.check_output_directory(keys)
        found += destination.check_checkpoints(keys, context.accept)
    return found


def _check_flags(environment: Environment) -> list[Problem]:
    text = environment.set["XLA_FLAGS"]
    return _probe(text, tuple((flag, environment.sources[f"XLA_FLAGS:{flag}"]) for flag in parse_flags(text)))


@cache
def _probe(text: str, origins: tuple[tuple[str, str], ...]) -> list[Problem]:
    """The points of a sweep mostly share their flags, and asking XLA takes 0.4 s."""
    return probe_flags(parse_flags(text), origins=dict(origins))


def _explicit(origins: dict[str, Origin], prefix: str) -> frozenset[str]:
    """Names under a mapping that somebody set above the platform preset."""
    return frozenset(
        key.removeprefix(prefix)
        for key, origin in origins.items()
        if key.startswith(prefix) and origin.layer != "platform"
    )


def _installed_jax() -> str:
    try:
        return importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
