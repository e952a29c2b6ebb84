"""A finished composition as a Hydra config of its own: `--config-dir RUN_DIR --config-name replay` composes it again.

It refers to no preset, so presets that changed since do not matter.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import yaml
from omegaconf import OmegaConf

from primus_hydra.flatten import Composition
from primus_hydra.paths import conf_dir
from primus_hydra.redaction import is_secret_name

_DEFAULTS = [
    "primus_hydra_schema",
    "_self_",
    {"override hydra/hydra_logging": "none"},
    {"override hydra/job_logging": "none"},
]


def make_replay_config(composition: Composition, keys: dict[str, Any]) -> str:
    """YAML text of the config.

    Args:
        composition: what was composed.
        keys: the composed MaxText keys that may be written, without credentials.
    """
    run = {name: value for name, value in asdict(composition.settings.run).items() if name != "dir"}
    platform = asdict(composition.settings.platform)
    platform["env"] = {name: value for name, value in platform["env"].items() if not is_secret_name(name)}
    hydra = yaml.safe_load((conf_dir() / "config.yaml").read_text(encoding="utf-8"))["hydra"]
    head = {"defaults": _DEFAULTS, "hydra": hydra}
    settings = {"run": run, "platform": platform, **composition.private, **keys}
    return OmegaConf.to_yaml(OmegaConf.create(head)) + to_omegaconf_yaml(settings)


def to_omegaconf_yaml(values: Mapping[str, Any]) -> str:
    """YAML that OmegaConf (and so MaxText and Hydra) loads as exactly these values.

    OmegaConf's own writer quotes texts that its loader would read as numbers, such as 1e3.
    """
    return OmegaConf.to_yaml(OmegaConf.create(escape_interpolations(dict(values))))


def escape_interpolations(value: Any) -> Any:
    """Plain data in which `${` is text and not an interpolation."""
    if isinstance(value, str):
        return value.replace("${", "\\${")
    if isinstance(value, Mapping):
        return {name: escape_interpolations(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [escape_interpolations(inner) for inner in value]
    return value
