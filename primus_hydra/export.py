"""Write the run folder: exactly what MaxText will read, and everything needed to repeat it."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from primus_hydra.atomic_files import format_json, write_in_order
from primus_hydra.destination import check_run_folder
from primus_hydra.errors import format_problem
from primus_hydra.flatten import Composition
from primus_hydra.interpolation import escape_interpolations
from primus_hydra.maxtext.axis_rules import REPLACE_ALL, RULES, rules_to_send
from primus_hydra.maxtext.keys import installed_version
from primus_hydra.maxtext.model_files import load_model_keys
from primus_hydra.naming import default_run_name
from primus_hydra.points import Plan
from primus_hydra.redaction import SECRET_KEYS, is_secret_name, split_secrets
from primus_hydra.replay import make_replay_config, to_omegaconf_yaml
from primus_hydra.runs import RunFolder, RunFolderError
from primus_hydra.schema import PlatformSettings, SweepSettings

TRAINER_MODULE = "maxtext.trainers.pre_train.train"
_HEADER = (
    "# Composed by primus_hydra. Run it with the arguments in command.json: MaxText's own model file beats this file.\n"
)


def complete_keys(composition: Composition, folder: RunFolder) -> tuple[dict[str, Any], dict[str, str]]:
    """Add what every run needs (name, output folder, metrics file) and drop what never leaves this process.

    Returns:
        All keys for MaxText, and the origin of each as text.
    """
    filled = {
        "base_config": "base.yml",
        "run_name": default_run_name(folder.path),
        "base_output_directory": str(folder.path / "output"),
    }
    composed = {key: value for key, value in composition.keys.items() if key not in SECRET_KEYS}
    keys = {key: value for key, value in filled.items() if not composed.get(key)} | composed
    keys = {
        **keys,
        **{key: value for key, value in filled.items() if not keys[key]},
        "metrics_file": str(folder.metrics_jsonl),
    }
    origins = {key: str(composition.origins.get(key, "primus_hydra")) for key in keys}
    for key in keys:
        if (not composition.keys.get(key) and key in filled) or key == "metrics_file":
            origins[key] = "primus_hydra"
    return keys, origins


def maxtext_arguments(keys: Mapping[str, Any], folder: RunFolder) -> list[str]:
    """MaxText's arguments: the file, then every key that its model file would otherwise win.

    Sharding rules always travel here: in the file they would replace base.yml's whole list.
    """
    model = load_model_keys(str(keys.get("model_name", "default")))
    sent = {key: value for key, value in keys.items() if key in model or key in (RULES, REPLACE_ALL)}
    if RULES in keys:
        sent[RULES] = rules_to_send(keys, model)
    if sent and keys.get("override_model_config"):
        sent = {"override_model_config": True, **sent}
    return [str(folder.maxtext_yml), *(f"{key}={format_argument(value)}" for key, value in sent.items())]


def format_argument(value: Any) -> str:
    """A value as text that OmegaConf's `from_cli` reads back as the same value and type."""
    value = escape_interpolations(value)
    if isinstance(value, str) and value and OmegaConf.from_cli([f"k={value}"]).k == value:
        return value
    return json.dumps(value)


def write_run_folder(plan: Plan) -> None:
    """Write maxtext.yml, command.json, run.json (state `planned`) and .hydra/ into the run folder.

    The record of an earlier attempt in the same folder is kept as `run.json.<attempt>`. A kill at any point leaves
    either the folder as it was, or a record with the state `planning`: such a folder cannot be executed, and planning
    the same run again completes it.

    Raises:
        OSError: the folder cannot be written; the record in it is as it was.
        RunFolderError: the folder belongs to another run, or its record is damaged.
        RunLockedError: a worker executes the folder right now.
    """
    folder = plan.folder
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        folder.remove_half_written()
        if problems := check_run_folder(folder, plan.identity):
            raise RunFolderError(problems[0].what)
        record = _first_record(plan) | {"attempt": folder.count_attempts()}
        folder.keep_record()
        begun, done = (format_json(record | {"state": state}) for state in ("planning", "planned"))
        files = [(folder.run_json, begun), *_list_files(plan), (folder.run_json, done)]
        write_in_order(files, staging=folder.path)


def _list_files(plan: Plan) -> list[tuple[Path, str]]:
    """Every file of the run folder but the record, with its text."""
    folder, command = plan.folder, _command(plan)
    in_file = {key: value for key, value in plan.keys.items() if key != RULES}
    replayed = {key: value for key, value in plan.composition.keys.items() if key not in SECRET_KEYS}
    return [
        (folder.maxtext_yml, _HEADER + to_omegaconf_yaml(in_file)),
        (folder.command_json, format_json(command)),
        (folder.command_sh, format_script(command)),
        (folder.replay_yaml, make_replay_config(plan.composition, replayed)),
        *((folder.hydra_dir / name, text) for name, text in plan.record_composition().items()),
    ]


def format_script(command: Mapping[str, Any]) -> str:
    """command.json as a shell script. Plain MaxText runs in it: no record is written and nothing is compared."""
    lines = ["#!/usr/bin/env bash", "# Repeat this run with plain MaxText; run.json is not touched.", "set -eu"]
    lines.append(f"cd {shlex.quote(command['cwd'])}")
    lines += [f"unset {name}" for name in command["unset_env"]]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(command["env"].items())]
    lines.append(f"exec {shlex.join(command['argv'])}")
    return "\n".join(lines) + "\n"


def _command(plan: Plan) -> dict[str, Any]:
    arguments = maxtext_arguments(plan.keys, plan.folder)
    trainer = plan.composition.settings.run.trainer
    return {
        "argv": [*(trainer or [sys.executable, "-m", TRAINER_MODULE]), *arguments],
        "trainer": trainer,
        "maxtext_args": arguments,
        "env": split_secrets(plan.environment.set)[0],
        "unset_env": list(plan.environment.unset),
        "cwd": str(plan.folder.path),
    }


def _public(platform: PlatformSettings) -> dict[str, Any]:
    """Platform settings that a file may hold."""
    return asdict(platform) | {"env": {name: value for name, value in platform.env.items() if not is_secret_name(name)}}


def _ranking(sweep: SweepSettings) -> dict[str, Any]:
    """What a report ranks this run by."""
    return {
        "objective": list(sweep.objective),
        "direction": sweep.direction.value if sweep.direction is not None else None,
    }


def _first_record(plan: Plan) -> dict[str, Any]:
    """The record, without state and attempts."""
    settings = plan.composition.settings
    return {
        "schema": 1,
        "name": plan.keys["run_name"],
        "point": plan.number,
        "repeat": plan.repeat,
        "overrides": list(plan.overrides),
        "choices": plan.choices,
        "composed": {key: {"value": value, "origin": plan.origins[key]} for key, value in plan.keys.items()},
        "private": plan.composition.private,
        "settings": {
            "run": asdict(settings.run),
            "platform": _public(settings.platform),
            "sweep": _ranking(settings.sweep),
        },
        "environment": {"inherited": plan.environment.inherited, "sources": plan.environment.sources},
        "identity": plan.identity,
        "fingerprint": plan.fingerprint,
        "accepted_rules": list(settings.run.accept),
        "warnings": [format_problem(problem) for problem in plan.warnings],
        "versions": {"maxtext": installed_version()},
        "global_batch_size": plan.batch.num_sequences,
        "tokens_per_step": plan.batch.num_tokens,
        "result": None,
    }
