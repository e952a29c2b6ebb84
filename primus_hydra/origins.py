"""Where each value of a composed configuration came from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hydra.core.config_loader import ConfigLoader
from hydra.types import RunMode

from primus_hydra.grammar import parse_override
from primus_hydra.paths import conf_dir

COMMAND_LINE = "command line"


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The last place that set a value."""

    layer: str
    """Config group (`module`, `model`, `platform`, ...), `config`, or `command line`."""
    text: str
    """For a person: the file and the group choice, or the override as typed."""

    def __str__(self) -> str:
        return self.text


def preset_folders(loader: ConfigLoader) -> tuple[Path, ...]:
    """Where Hydra looks for presets, the first one that has a name wins."""
    elements = loader.get_search_path().get_path()
    return tuple(Path(element.path.removeprefix("file://")) for element in elements if element.path)


def trace_files(
    loader: ConfigLoader, config_name: str, overrides: Sequence[str], choices: Mapping[str, str]
) -> dict[str, Origin]:
    """Find the file that set each key last, in Hydra's own order of composition.

    Args:
        loader: the config loader of the running Hydra application.
        config_name: the primary config.
        overrides: the task's overrides, as Hydra saw them.
        choices: config group -> the preset that was chosen.

    Returns:
        Dotted key (`steps`, `platform.env.NVTE_FUSED_ATTN`) -> origin.
    """
    folders = preset_folders(loader)
    defaults = loader.compute_defaults_list(config_name=config_name, overrides=list(overrides), run_mode=RunMode.RUN)
    origins: dict[str, Origin] = {}
    for default in defaults.defaults:
        if default.config_path is None or default.config_path.startswith("hydra/"):
            continue
        file = next((path for folder in folders if (path := folder / f"{default.config_path}.yaml").is_file()), None)
        if file is not None:
            group, _, _ = default.config_path.rpartition("/")
            origin = Origin(layer=group or "config", text=_describe_file(file, group, choices))
            origins |= dict.fromkeys(_dotted_keys(_read(file), default.package or ""), origin)
    return origins


@cache
def _read(file: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(file.read_text(encoding="utf-8"), Loader=loader) or {}
    return {key: value for key, value in content.items() if key not in ("defaults", "hydra")}


def find_unquoted(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Environment variables and XLA flags of a preset file that YAML read as a number or a truth value.

    Their text is lost by then (`010` is 8, `1.50` is 1.5), so they have to be quoted.
    """
    platform = content.get("platform")
    for group in ("env", "xla_flags"):
        values = platform.get(group) if isinstance(platform, Mapping) else None
        for name, value in (values if isinstance(values, Mapping) else {}).items():
            if value is not None and not isinstance(value, str):
                yield f"platform.{group}.{name}", value


def _describe_file(file: Path, group: str, choices: Mapping[str, str]) -> str:
    """A path (relative for the shipped presets) with the choice through which it came."""
    shipped = conf_dir()
    path = Path("conf") / file.relative_to(shipped) if file.is_relative_to(shipped) else file
    return f"{path} ({group}={choices[group]})" if group in choices else str(path)


def _dotted_keys(content: Mapping[str, Any], package: str) -> Iterator[str]:
    prefix = "" if package in ("", "_global_") else f"{package}."
    for key, value in content.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _dotted_keys(value, f"{prefix}{key}")


def trace_overrides(overrides: Iterable[str], origin: str = COMMAND_LINE) -> dict[str, Origin]:
    """Dotted key -> origin of `key=value` overrides; group choices are no values and are told by their files."""
    return {
        override.key_or_group: Origin(layer=COMMAND_LINE, text=f"{origin}: {(override.input_line or '').lstrip('+')}")
        for override in map(parse_override, overrides)
        if not override.key_or_group.startswith("hydra")
    }
