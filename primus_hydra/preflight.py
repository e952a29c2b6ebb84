"""Everything that is checked before anything is written: rules, conflicts, XLA flags, the place to write to."""

import importlib.metadata
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from primus_hydra import destination
from primus_hydra.environment import Environment
from primus_hydra.errors import Problem
from primus_hydra.flatten import Composition
from primus_hydra.identity import identify
from primus_hydra.maxtext.keys import installed_version
from primus_hydra.maxtext.model_files import load_hub_tokenizers, load_model_keys
from primus_hydra.platforms import Machine, detect_machine
from primus_hydra.redaction import SECRET_KEYS
from primus_hydra.rules import RuleContext, evaluate
from primus_hydra.runs import RunFolder
from primus_hydra.schema import Action
from primus_hydra.xla_flags import parse_flags
from primus_hydra.xla_probe import probe_flags


def check_plan(
    composition: Composition,
    folder: RunFolder,
    keys: dict[str, object],
    effective: dict[str, object],
    origins: dict[str, str],
    environment: Environment | None,
) -> list[Problem]:
    """Everything that rules, XLA flags and the places to write to have against a configuration."""
    settings = composition.settings
    context = RuleContext(
        keys=keys,
        effective=effective,
        origins=origins,
        platform=settings.platform,
        machine=_this_machine(),
        maxtext_version=installed_version(),
        jax_version=_installed_jax(),
        action=(Action.export if settings.action is Action.explain else settings.action).value,
        env=os.environ,
        run_dir=folder.path,
        custom_trainer=settings.run.trainer is not None,
        accept=frozenset(settings.run.accept),
    )
    found = [*evaluate(context, other_rules=destination.RULES), *check_conflicts(keys, origins)]
    found += check_reserved(composition)
    if settings.action is Action.explain:
        # What is explained need not be able to run: refusals are told, and the explanation is given.
        return [replace(problem, severity="warn") for problem in found]
    if settings.action is not Action.check:
        found += destination.check_output_directory(keys)
    if environment is not None:
        found += _check_flags(environment)
    if environment is not None and settings.action is not Action.check:
        identity = identify(keys, environment.set, settings.run.trainer)
        found += destination.check_run_folder(folder, identity)
        found += destination.check_checkpoints(keys, identity, context.accept)
    return found


def _check_flags(environment: Environment) -> list[Problem]:
    text = environment.set["XLA_FLAGS"]
    return _probe(text, tuple((flag, environment.sources[f"XLA_FLAGS:{flag}"]) for flag in parse_flags(text)))


@cache
def _probe(text: str, origins: tuple[tuple[str, str], ...]) -> list[Problem]:
    """The points of a sweep mostly share their flags, and asking XLA takes 0.4 s."""
    return probe_flags(parse_flags(text), origins=dict(origins))


def check_reserved(composition: Composition) -> list[Problem]:
    """Keys that are decided elsewhere: the metrics file, and credentials."""
    problems = []
    if composition.keys.get("metrics_file"):
        problems.append(
            Problem(
                what="metrics_file cannot be chosen: the run folder's metrics.jsonl is what results are read from.",
                fix="Remove the key; run.dir=DIR chooses the folder.",
                origin=str(composition.origins["metrics_file"]),
            )
        )
    problems += [
        Problem(
            what=f"{key} was given as a key: it reaches MaxText by the environment and is written to no file.",
            fix="Set the environment variable HF_TOKEN instead: everybody on this machine can read a command line.",
            severity="warn",
        )
        for key in SECRET_KEYS
        if composition.keys.get(key)
    ]
    return problems


def check_conflicts(keys: Mapping[str, Any], origins: Mapping[str, str]) -> list[Problem]:
    """Values that MaxText would not honour: its model file sets the key otherwise, or it forces one."""
    model_name = str(keys.get("model_name", "default"))
    problems = []
    if (
        model_name in load_hub_tokenizers()
        and model_name != "default"
        and not keys.get("tokenizer_path")
        and keys.get("tokenizer_type", "huggingface") != "huggingface"
    ):
        problems.append(
            Problem(
                what=f"tokenizer_type={keys['tokenizer_type']} would be ignored: without tokenizer_path MaxText takes "
                f"{load_hub_tokenizers()[model_name]} for {model_name}, and sets huggingface.",
                fix="Set tokenizer_path as well, or remove tokenizer_type.",
                origin=origins["tokenizer_type"],
            )
        )
    if keys.get("override_model_config"):
        return problems
    model = load_model_keys(model_name)
    return problems + [
        Problem(
            what=f"{key}={keys[key]!r} is set, but MaxText's model file for {keys['model_name']} says {model[key]!r}.",
            fix="Set override_model_config=true to let the composed value win, or remove the key.",
            origin=origins[key],
        )
        for key in model
        if key in keys and keys[key] != model[key]
    ]


@cache
def _this_machine() -> Machine:
    return detect_machine()


@cache
def _installed_jax() -> str:
    try:
        return importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
