"""Everything that happens to one composed configuration before it may run: flatten -> check -> plan."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from primus_hydra.environment import Environment, layer_environment
from primus_hydra.errors import ConfigError, Problem
from primus_hydra.export import complete_keys
from primus_hydra.flatten import Composition, flatten
from primus_hydra.hydra_job import HydraJob, choose_run_dir
from primus_hydra.layers import read_image_environment
from primus_hydra.maxtext.keys import package_dir
from primus_hydra.maxtext.model_files import load_defaults, load_model_keys
from primus_hydra.mesh import plan_mesh
from primus_hydra.origins import COMMAND_LINE, Origin
from primus_hydra.points import Batch, Plan, Point
from primus_hydra.preflight import check_plan
from primus_hydra.runs import RunFolder


def plan_point(job: HydraJob) -> Point:
    """A plan for what Hydra composed, or all that is wrong with it; nothing is written."""
    folder = RunFolder(Path.cwd())
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    try:
        folder = RunFolder(choose_run_dir(job))
        plan = _make_plan(job, folder)
    except ConfigError as error:
        problems = error.problems
    return Point(number=job.number, overrides=job.typed, folder=folder, plan=plan, problems=problems)


def _make_plan(job: HydraJob, folder: RunFolder) -> Plan:
    composition, problems = flatten(job.config, job.origins, Path.cwd())
    keys, key_origins = complete_keys(composition, folder)
    effective = {**load_defaults(), **load_model_keys(str(keys.get("model_name", "default"))), **keys}
    environment, found = _layer_environment(composition, job.origins)
    problems += found + check_plan(composition, folder, keys, effective, key_origins, environment)
    problems += _check_sweep_settings(composition, job)
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
        overrides=job.typed,
        choices=dict(job.choices),
        record_composition=job.record,
        number=job.number,
    )


def _check_sweep_settings(composition: Composition, job: HydraJob) -> Iterator[Problem]:
    """Settings of a sweep that come to nothing."""
    sweep, origins = composition.settings.sweep, job.origins
    if sweep.resume is not None:
        what = "sweep.resume is read from the command line only."
        yield Problem(what=what, fix="Remove it here.", origin=str(origins.get("sweep.resume", "")))
    if job.number is not None:
        return
    typed = [name for name, origin in origins.items() if name.startswith("sweep.") and origin.layer == COMMAND_LINE]
    if typed:
        what = f"Nothing comes of {' and '.join(typed)} in a single run."
        yield Problem(what=what, fix="Add --multirun, or leave it out.", origin=COMMAND_LINE, severity="warn")
    asked = {"sweep.grid": sweep.grid, "sweep.zip": sweep.zip, "sweep.points": sweep.points}
    if names := [name for name, value in asked.items() if value and name not in typed]:
        yield Problem(
            what=f"This is one run, without the values that {' and '.join(names)} would try.",
            fix="Add --multirun to run the points.",
            origin="; ".join(dict.fromkeys(str(origins.get(name, "")) for name in names)),
            severity="warn",
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
    composition: Composition, origins: Mapping[str, Origin]
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


def _explicit(origins: Mapping[str, Origin], prefix: str) -> frozenset[str]:
    """Names under a mapping that somebody set above the platform preset."""
    return frozenset(
        key.removeprefix(prefix)
        for key, origin in origins.items()
        if key.startswith(prefix) and origin.layer != "platform"
    )
