"""YAML text of preset files."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from primus_hydra.interpolation import escape_interpolations

_PLAIN = re.compile(r"[A-Za-z_/](?:[\w./ -]*[\w./-])?", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that some YAML reader might take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and yaml.safe_load(text) == text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_text)


def to_preset_yaml(values: Mapping[str, Any]) -> str:
    """YAML that OmegaConf, and so Hydra, loads as exactly these values; none is an interpolation."""
    text: str = yaml.dump(
        escape_interpolations(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return text.rstrip("\n")
