"""A finished composition as a Hydra config of its own: `--config-dir RUN_DIR --config-name replay` composes it again.

It refers to no preset, so presets that changed since do not matter.
"""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import yaml

from primus_hydra.flatten import Composition
from primus_hydra.interpolation import escape_interpolations
from primus_hydra.omegaconf_yaml import format_yaml
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
    settings = {"run": run, "platform": platform, **composition.private, **keys}
    return _format_head() + to_omegaconf_yaml(settings)


@cache
def _format_head() -> str:
    """The same for every run; reading config.yaml takes 3 ms."""
    hydra = yaml.safe_load((conf_dir() / "config.yaml").read_text(encoding="utf-8"))["hydra"]
    return format_yaml({"defaults": _DEFAULTS, "hydra": hydra})


def to_omegaconf_yaml(values: Mapping[str, Any]) -> str:
    """YAML that OmegaConf (and so MaxText and Hydra) loads as exactly these values."""
    return format_yaml(escape_interpolations(dict(values)))
