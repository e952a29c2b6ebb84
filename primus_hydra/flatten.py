"""From Hydra's nested configuration to MaxText's flat keys beside our own settings."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from primus_hydra.errors import ConfigError, Problem
from primus_hydra.maxtext.keys import Key, load_keys
from primus_hydra.maxtext.names import unknown_key
from primus_hydra.maxtext.values import absolute_path, coerce, is_path_key
from primus_hydra.origins import Origin
from primus_hydra.schema import PRIVATE_KEYS, Action, Settings
from primus_hydra.setting_types import NAMESPACES, check_settings

_DERIVED_SECTION = "DerivedValues"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_UNKNOWN_ORIGIN = Origin(layer="config", text="an unknown file")


@dataclass(frozen=True, kw_only=True, slots=True)
class Composition:
    """One composed configuration, split by who reads it."""

    keys: dict[str, Any]
    """MaxText's keys, typed as MaxText declares them, local paths absolute."""
    private: dict[str, Any]
    """Primus's keys for the framework itself: trainable and the sink levels."""
    settings: Settings
    origins: Mapping[str, Origin]
    """Dotted key -> where it was set last."""


def flatten(config: DictConfig, origins: Mapping[str, Origin], typed_in: Path) -> tuple[Composition, list[Problem]]:
    """Split and type a composed configuration.

    Args:
        config: the task configuration, without Hydra's own node.
        origins: see `origins.trace_origins`.
        typed_in: folder where the command was typed; relative paths start there.

    Returns:
        What could be read, and all that is wrong: unknown names, wrong types, unfilled values. A wrong key is left
        out of the composition.

    Raises:
        ConfigError: our own settings cannot be read, so that nothing more can be said.
    """
    problems: list[Problem] = []
    keys: dict[str, Any] = {}
    private: dict[str, Any] = {}
    for name in config:
        name = str(name)
        if name in NAMESPACES or name == "action":
            continue
        origin = origins.get(name, _UNKNOWN_ORIGIN).text
        value, problem = _resolve(config, name, origin)
        if problem is None and name in load_keys() and load_keys()[name].section == _DERIVED_SECTION:
            problem = Problem(
                what=f"{name} cannot be set: MaxText computes it from other keys.",
                fix=_describe_sources(load_keys()[name]),
                origin=origin,
            )
        elif problem is None and name in PRIVATE_KEYS:
            private[name], problem = value, _check_private(name, value, origin)
        elif problem is None and name not in load_keys():
            problem = _explain_unknown(name, value, config, origin)
        elif problem is None:
            value, problem = coerce(value, load_keys()[name], origin)
            if problem is None:
                keys[name] = _make_absolute(value, load_keys()[name], typed_in)
        problems += [problem] if problem else []
    settings, found = _read_settings(config, origins)
    if settings is None:
        raise ConfigError([*problems, *found])
    settings = replace(settings, run=replace(settings.run, trainer=_find_files(settings.run.trainer, typed_in)))
    return Composition(keys=keys, private=private, settings=settings, origins=origins), [*problems, *found]


def _resolve(config: DictConfig, name: str, origin: str) -> tuple[Any, Problem | None]:
    try:
        if OmegaConf.is_missing(config, name):
            return "???", None
        value = config[name]
        return (OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value), None
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0].partition("raised while resolving interpolation: ")
        return None, Problem(what=f"The value of {name} cannot be resolved: {reason[2] or reason[0]}", origin=origin)


def _describe_sources(key: Key) -> str:
    return f"Set the keys it is made of instead (MaxText: {key.description or 'derived value'})."


def _explain_unknown(name: str, value: Any, config: DictConfig, origin: str) -> Problem:
    if isinstance(value, Mapping) and name in ("module", "model", "data", "experiment", "precision"):
        return Problem(
            what=f"A preset of the group {name} put its keys under {name}. instead of at the top level.",
            fix="Make `# @package _global_` a comment line at the top of the preset file.",
            origin=origin,
        )
    return unknown_key(name, origin, [*NAMESPACES, "action", *PRIVATE_KEYS])


def _check_private(name: str, value: Any, origin: str) -> Problem | None:
    if name == "trainable":
        allowed, valid = "Allowed: true or false.", isinstance(value, bool)
    else:
        allowed, valid = f"Allowed: {', '.join(_LEVELS)} or null.", value is None or value in _LEVELS
    return (
        None
        if valid
        else Problem(what=f"{name}={value!r} is not a value for this key.", allowed=allowed, origin=origin)
    )


def _read_settings(config: DictConfig, origins: Mapping[str, Origin]) -> tuple[Settings | None, list[Problem]]:
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in NAMESPACES:
        node = config.get(name)
        if not isinstance(node, DictConfig) or node._is_none():
            problems.append(Problem(what=f"{name} is not a mapping of settings.", fix="Set single values instead."))
            continue
        try:
            try:
                values[name] = OmegaConf.to_object(node)
            except MissingMandatoryValue:
                problems += _explain_missing(name, sorted(OmegaConf.missing_keys(node)), origins)
        except OmegaConfBaseException as error:
            problems.append(Problem(what=f"The settings under {name} cannot be read: {str(error).splitlines()[0]}"))
    try:
        action = Action(config.action)
    except (ValueError, OmegaConfBaseException):
        problems.append(
            Problem(
                what="The action does not exist.",
                allowed=f"Actions: {', '.join(action.value for action in Action)}.",
                origin=origins.get("action", _UNKNOWN_ORIGIN).text,
            )
        )
    if problems:
        return None, problems
    settings = Settings(action=action, **values)
    return settings, list(check_settings(settings, {name: origin.text for name, origin in origins.items()}))


def _explain_missing(namespace: str, keys: Iterable[str], origins: Mapping[str, Origin]) -> list[Problem]:
    return [
        Problem(
            what=f"{namespace}.{key} has to be filled in.",
            fix="Choose a platform preset, for example platform=mi300x.",
            origin=origins.get(f"{namespace}.{key}", _UNKNOWN_ORIGIN).text,
        )
        for key in keys
    ]


def _find_files(trainer: list[str] | None, typed_in: Path) -> list[str] | None:
    """The trainer's words with those that name a file where the command was typed as absolute paths.

    A program without a folder is looked for in PATH, as in a shell.
    """
    return trainer and [
        absolute_path(word, typed_in) if (index or "/" in word) and _is_file(typed_in / word) else word
        for index, word in enumerate(trainer)
    ]


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - a word may be a whole program, too long for a path


def _make_absolute(value: Any, key: Key, typed_in: Path) -> Any:
    if not isinstance(value, str) or not is_path_key(key):
        return value
    resolved = absolute_path(value, typed_in)
    # A tokenizer may also be a name on the Hugging Face hub or a file inside MaxText's assets.
    return value if key.name == "tokenizer_path" and not Path(resolved).exists() else resolved
