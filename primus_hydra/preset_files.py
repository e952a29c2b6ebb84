"""Preset files of a user: can they be read at all?"""

from collections.abc import Iterator
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from primus_hydra.errors import Problem
from primus_hydra.origins import find_unquoted

_PRIMARY = "config"


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
        for name, value in find_unquoted(yaml.safe_load(file.read_text(encoding="utf-8")) or {}):
            yield Problem(
                what=f"{name} is {value!r}, which YAML does not read as text, so the text that was written is lost.",
                fix="Put the value in quotes.",
                origin=str(file),
            )


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
