"""What a preset has to say so that it composes to exactly what one run folder was composed to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from primus_hydra.identity import IDENTITY_FREE_VARIABLES, OUTPUT_KEYS
from primus_hydra.paths import conf_dir
from primus_hydra.report.figures import mapping, text_mapping, texts
from primus_hydra.runs import Record, RunFolder, read_json
from primus_hydra.xla_flags import parse_flags

GROUPS = ("module", "model", "data", "platform", "precision")
"""Config groups under the experiment, in their order."""
PLACES = OUTPUT_KEYS | {"wandb_run_name", "goodput_job_name", "hf_access_token"}
"""MaxText keys that each run chooses for itself."""
_NO_CHOICE = "None"
_HOST_DEVICES = "xla_force_host_platform_device_count"
_SHIPPED_ORIGIN = re.compile(r"conf/(\w+)/")


@dataclass(frozen=True, kw_only=True, slots=True)
class WinnerConfig:
    """One run's composition, ready to be written."""

    choices: Mapping[str, str | None]
    """Config group -> the shipped preset that the run was made from; None where that would not give the same again
    (a preset of the user's own, a deleted key), so that no preset takes part and every value is written."""
    replaced: tuple[str, ...]
    """What the run had chosen instead, `model=mine`, for groups whose choice is None here."""
    keys: Mapping[str, Any]
    """MaxText keys, without places."""
    private: Mapping[str, Any]
    """Primus's keys: trainable and the sink levels."""
    run: Mapping[str, Any]
    """Our settings under `run`, without its folder."""
    platform: Mapping[str, Any]
    """Our settings under `platform`; `env` and `xla_flags` hold what really reached the trainer."""


def read_config(folder: RunFolder) -> WinnerConfig:
    """Read the composition of a run folder.

    Raises:
        RecordError: run.json or command.json cannot be read.
        ConfigError: the recorded XLA_FLAGS are none.
    """
    record, command = folder.read_record(), read_json(folder.command_json)
    settings = mapping(record.get("settings"))
    platform = dict(mapping(settings.get("platform")))
    chosen, choices = mapping(record.get("choices")), _choose_presets(record, folder)
    return WinnerConfig(
        choices=choices,
        replaced=tuple(
            f"{group}={chosen[group]}" for group in GROUPS if choices[group] is None and _is_choice(chosen, group)
        ),
        keys=_choose_keys(record, choices),
        private=mapping(record.get("private")),
        run={name: value for name, value in mapping(settings.get("run")).items() if name != "dir"},
        platform={**platform, "env": _read_env(record, command), "xla_flags": _read_flags(platform, command)},
    )


def _is_choice(chosen: Mapping[str, Any], group: str) -> bool:
    return bool(chosen.get(group, _NO_CHOICE) != _NO_CHOICE)


def _choose_keys(record: Record, choices: Mapping[str, str | None]) -> dict[str, Any]:
    """Composed keys; a file that ships with a preset is left to the preset, since every machine has it elsewhere."""
    keys = {}
    for key, entry in mapping(record.get("composed")).items():
        shipped = _SHIPPED_ORIGIN.match(str(mapping(entry).get("origin")))
        is_shipped_file = shipped is not None and choices.get(shipped[1]) and str(entry["value"]).startswith("/")
        if key not in PLACES and not is_shipped_file:
            keys[key] = entry["value"]
    return keys


def _choose_presets(record: Record, folder: RunFolder) -> dict[str, str | None]:
    """Shipped presets may take part where nothing of theirs was replaced or deleted."""
    chosen = mapping(record.get("choices"))
    if any(item.startswith("~") for item in texts(record.get("overrides"))):
        return dict.fromkeys(GROUPS)
    own = _list_own_presets(folder)
    return {group: _keep_choice(group, str(chosen.get(group)), own) for group in GROUPS}


def _keep_choice(group: str, choice: str, own: frozenset[str]) -> str | None:
    shipped = {file.stem for file in (conf_dir() / group).glob("*.yaml")}
    replaced = {name for name in shipped if f"{group}/{name}" in own}
    return choice if choice in shipped and not replaced else None


def _list_own_presets(folder: RunFolder) -> frozenset[str]:
    """`group/name` of every preset in the folders that the user gave, by Hydra's record."""
    try:
        recorded = yaml.safe_load((folder.hydra_dir / "hydra.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return frozenset()
    sources = mapping(mapping(mapping(recorded).get("hydra")).get("runtime")).get("config_sources")
    paths = [
        Path(str(mapping(source).get("path"))) for source in sources or () if mapping(source).get("schema") == "file"
    ]
    return frozenset(
        f"{file.parent.name}/{file.stem}" for path in paths if path != conf_dir() for file in path.glob("*/*.yaml")
    )


def _read_env(record: Record, command: Mapping[str, Any]) -> dict[str, str | None]:
    """Variables of the trainer: what was composed, changed to what won over it (a shell may have)."""
    composed = mapping(mapping(mapping(record.get("settings")).get("platform")).get("env"))
    sources = mapping(mapping(record.get("environment")).get("sources"))
    given, removed = text_mapping(command.get("env")), texts(command.get("unset_env"))
    env: dict[str, str | None] = {}
    for name in dict.fromkeys([*composed, *given]):
        belongs_here = name in IDENTITY_FREE_VARIABLES or sources.get(name) == "primus_hydra"
        if name == "XLA_FLAGS" or (belongs_here and name not in composed):
            continue
        if name in given:
            env[name] = given[name]
        elif composed[name] is None or name in removed:
            env[name] = None
    return env


def _read_flags(platform: Mapping[str, Any], command: Mapping[str, Any]) -> dict[str, str | None]:
    """XLA flags of the trainer. The number of host devices follows from the platform unless it was written."""
    composed = mapping(platform.get("xla_flags"))
    given = parse_flags(text_mapping(command.get("env")).get("XLA_FLAGS", ""))
    flags: dict[str, str | None] = {}
    for name in dict.fromkeys([*composed, *given]):
        if name != _HOST_DEVICES or name in composed:
            # A flag without a value is true; null would remove it.
            flags[name] = (given[name] or "true") if given.get(name, "") is None else given.get(name)
    return flags
