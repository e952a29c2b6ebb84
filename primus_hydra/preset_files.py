"""Preset files of a user: can they be read at all?"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from primus_hydra.errors import Problem
from primus_hydra.origins import find_unquoted
from primus_hydra.setting_types import NAMESPACES, check_setting, list_settings
from primus_hydra.sweep.expand import Space, check_shapes

_PRIMARY = "config"
_GROUPS_LIKE_SETTINGS = ("platform", "sweep")
"""Groups with the name of settings of ours: without a package line their keys would land among those."""
_PACKAGE = re.compile(r"^#\s*@package\b", re.MULTILINE)
_NO_SPACE: Mapping[str, Any] = {"grid": {}, "zip": [], "points": []}


def check_preset_folder(folder: Path, config_name: str | None) -> Iterator[Problem]:
    """Everything that would make Hydra stop in the middle of reading a folder of presets.

    Args:
        folder: what was given as --config-dir or --config-path.
        config_name: what was given as --config-name.
    """
    if not folder.is_dir():
        yield Problem(
            what=f"The preset folder {folder} does not exist.",
            fix="Name a folder with groups in it, for example presets/model/mine.yaml.",
            origin="command line",
        )
        return
    if config_name in (None, _PRIMARY) and (folder / f"{_PRIMARY}.yaml").exists():
        yield Problem(
            what=f"{folder / _PRIMARY}.yaml would replace the program's own primary config.",
            fix="Make it an experiment (a file in experiment/), or choose it with --config-name under another name.",
            origin=str(folder),
        )
    visible = (file for file in sorted(folder.rglob("*.yaml")) if not str(file.relative_to(folder)).startswith("."))
    for file in visible:
        reason = _explain_unreadable(file)
        if reason:
            yield Problem(what=f"The preset {file} cannot be read: {reason}", origin=str(file))
            continue
        text = file.read_text(encoding="utf-8")
        content = yaml.safe_load(text) or {}
        group = file.relative_to(folder).parts[0]
        if group in _GROUPS_LIKE_SETTINGS and not _PACKAGE.search(text) and not _are_settings(group, content):
            what = f"The preset {file} does not say where its keys belong, so Hydra would look for them under {group}."
            yield Problem(what=what, fix="Write `# @package _global_` in its first line.", origin=str(file))
        yield from _check_content(content, str(file))


def _are_settings(group: str, names: Iterable[str]) -> bool:
    return all(name == "defaults" or f"{group}.{name}" in list_settings() for name in names)


def _check_content(content: Mapping[str, Any], file: str) -> Iterator[Problem]:
    """Settings of ours that Hydra would refuse in its own words, and text that YAML has lost."""
    for name, value in find_unquoted(content):
        yield Problem(
            what=f"{name} is {value!r}, which YAML does not read as text, so the text that was written is lost.",
            fix="Put the value in quotes.",
            origin=file,
        )
    values = {f"{root}.{name}": value for root in NAMESPACES for name, value in _mapping(content.get(root)).items()}
    values |= {"action": content["action"]} if "action" in content else {}
    wrong = [
        check_setting(name, value, file)
        for name, value in values.items()
        if name in list_settings() and "${" not in str(value) and value != "???"
    ]
    yield from (problem for problem in wrong if problem is not None)
    space = Space(**{name: values.get(f"sweep.{name}", empty) for name, empty in _NO_SPACE.items()})
    if not any(wrong) and "${" not in str(space):
        yield from check_shapes(space, lambda _: file)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _explain_unreadable(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
        content = OmegaConf.create(text)
    except OSError as error:
        return f"{error.strerror}."
    except UnicodeDecodeError:
        return "it is not UTF-8 text."
    except yaml.YAMLError as error:
        return " ".join(str(error).split())
    except OmegaConfBaseException as error:
        return " ".join(str(error).split())
    if text.startswith("\ufeff"):
        return "it starts with a byte order mark; save it as UTF-8 without one."
    return "" if OmegaConf.is_dict(content) else "it holds no mapping of keys to values."
