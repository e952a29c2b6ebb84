"""The flow: compose -> flatten -> check -> plan. Hydra composes; each step is one call."""

import os
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from primus_hydra.environment import Environment, layer_environment
from primus_hydra.errors import ConfigError, Problem
from primus_hydra.export import complete_keys
from primus_hydra.flatten import Composition, flatten
from primus_hydra.hydra_job import choose_run_dir, list_choices, list_overrides, record_composition, sweep_position
from primus_hydra.layers import read_image_environment
from primus_hydra.maxtext.keys import package_dir
from primus_hydra.maxtext.model_files import load_defaults, load_model_keys
from primus_hydra.mesh import plan_mesh
from primus_hydra.origins import Origin, trace_origins
from primus_hydra.paths import conf_dir
from primus_hydra.points import Batch, Plan, Point
from primus_hydra.preflight import check_plan
from primus_hydra.resolvers import register_resolvers
from primus_hydra.runs import RunFolder
from primus_hydra.schema import register

points: list[Point] = []
"""What this process composed, in Hydra's order: one entry, or one for each point of a sweep."""

register()
register_resolvers()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def compose(config: DictConfig) -> None:
    """Hydra's task: turn one composed configuration into a plan (or the problems with it)."""
    overrides = tuple(text.lstrip("+") for text in list_overrides())
    folder = RunFolder(Path.cwd())
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    try:
        folder = RunFolder(choose_run_dir(config, overrides))
        plan = make_plan(config, folder, overrides)
    except ConfigError as error:
        problems = error.problems
    points.append(Point(number=sweep_position(), overrides=overrides, folder=folder, plan=plan, problems=problems))


def make_plan(config: DictConfig, folder: RunFolder, overrides: tuple[str, ...]) -> Plan:
    """Flatten and check a configuration; nothing is written.

    Args:
        config: the task configuration, without Hydra's own node.
        folder: where the run will lie.
        overrides: as typed.

    Raises:
        ConfigError: everything that is wrong, all at once.
    """
    loader, config_name = GlobalHydra.instance().config_loader(), str(HydraConfig.get().job.config_name)
    origins = trace_origins(loader, config_name, list_overrides(), list_choices())
    composition, problems = flatten(config, origins, Path.cwd())
    keys, key_origins = complete_keys(composition, folder)
    effective = {**load_defaults(), **load_model_keys(str(keys.get("model_name", "default"))), **keys}
    environment, found = _layer_environment(composition, origins)
    problems += found + check_plan(composition, folder, keys, effective, key_origins, environment)
    refused = [problem for problem in problems if problem.severity == "refuse"]
    if refused or environment is None:
        raise ConfigError(refused)
    return Plan(
        folder=folder,
        keys=keys,
        origins=key_origins,
        composition=composition,
        environment=environment,
        batch=_measure_batch(composition, effective),
        warnings=tuple(problems),
        overrides=overrides,
        choices=list_choices(),
        hydra_files=record_composition(config),
    )


def _measure_batch(composition: Composition, effective: dict[str, Any]) -> Batch:
    platform = composition.settings.platform
    mesh = plan_mesh(
        effective,
        devices_per_node=platform.devices_per_node,
        nodes=platform.nodes,
        jax_platform=platform.jax_platform,
    )
    return Batch(
        num_devices=mesh.num_devices,
        num_sequences=mesh.global_batch_size,
        sequence_length=int(effective["max_target_length"]),
    )


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


def _explicit(origins: dict[str, Origin], prefix: str) -> frozenset[str]:
    """Names under a mapping that somebody set above the platform preset."""
    return frozenset(
        key.removeprefix(prefix)
        for key, origin in origins.items()
        if key.startswith(prefix) and origin.layer != "platform"
    )
