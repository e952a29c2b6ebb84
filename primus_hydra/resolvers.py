"""Functions that presets may call: `${name:argument}` in a YAML file, resolved by OmegaConf when the value is read."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from omegaconf import DictConfig, Node, OmegaConf

from primus_hydra.maxtext.keys import package_dir
from primus_hydra.paths import conf_dir
from primus_hydra.platforms import detect_machine, detect_platform

_RECIPE_PLATFORM = {"gfx942": "mi300x", "gfx950": "mi355x"}
"""LLVM target -> platform whose published values hold for every platform with that chip."""
_FORMATS = {".txt": "text", ".md": "text", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}
"""File name ending -> reader of Hugging Face's `datasets`."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_NO_DEFAULT = object()


def register_resolvers() -> None:
    """Make the functions known to OmegaConf; calling it again changes nothing."""
    OmegaConf.register_new_resolver("by_platform", by_platform, replace=True)
    OmegaConf.register_new_resolver("sample_path", sample_path, replace=True)
    OmegaConf.register_new_resolver("maxtext_asset", maxtext_asset, replace=True)
    OmegaConf.register_new_resolver("text_format", text_format, replace=True)
    OmegaConf.register_new_resolver("detected_platform", detected_platform, replace=True)
    OmegaConf.register_new_resolver("scratch_dir", scratch_dir, replace=True)


def by_platform(values: Mapping[str, Any], default: Any = _NO_DEFAULT, *, _root_: DictConfig, _node_: Node) -> Any:
    """`${by_platform:{mi300x:4,mi355x:9}}`: the value for the composed platform.

    A platform that is not named takes the value of the one with the same chip: mi325x that of mi300x, and so does a
    preset of the user's own with `chip: gfx942`.

    Args:
        values: platform name -> value.
        default: for every other platform, `${by_platform:{mi355x:-1},1}`.

    Raises:
        ValueError: the platform has no value and there is no default.
    """
    name = str(OmegaConf.select(_root_, "platform.name", throw_on_missing=False))
    chip = str(OmegaConf.select(_root_, "platform.chip", throw_on_missing=False))
    for candidate in (name, _RECIPE_PLATFORM.get(chip, name)):
        if candidate in values:
            return values[candidate]
    if default is not _NO_DEFAULT:
        return default
    published = [str(platform) for platform in values]
    raise ValueError(
        f"no value is published for platform={name}, only for {' and '.join(published)}; "
        f"add platform={published[0]}, or choose a value yourself with {_node_._key()}=VALUE"
    )


@cache
def detected_platform() -> str:
    """`${detected_platform:}`: the platform preset for the chip of this machine, `cpu` where it has no GPU.

    Raises:
        ConfigError: GPUs without a preset.
    """
    return detect_platform(detect_machine())


@cache
def scratch_dir() -> str:
    """`${scratch_dir:}`: a temporary folder that goes with this process, for files nobody reads."""
    folder = tempfile.mkdtemp(prefix="primus_hydra-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def sample_path(name: str) -> str:
    """`${sample_path:text.txt}`: absolute path of a file or folder in the sample that ships with the presets."""
    return str(conf_dir() / "data" / "sample" / name)


def maxtext_asset(name: str) -> str:
    """`${maxtext_asset:tokenizers/tokenizer.gemma3}`: absolute path of a file inside the installed MaxText.

    Raises:
        ConfigError: MaxText is not installed.
    """
    return str(package_dir() / "assets" / name)


def text_format(files: str | None) -> str:
    """`${text_format:${hf_train_files}}`: which reader of Hugging Face's `datasets` fits, by the files' ending.

    Args:
        files: a path or a pattern such as `corpus/*.jsonl.gz`.

    Raises:
        ValueError: there is no reader for that ending, or no ending.
    """
    path = PurePosixPath(files or "")
    ending = PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
    if ending.lower() in _FORMATS:
        return _FORMATS[ending.lower()]
    raise ValueError(
        f"hf_train_files={files} does not say what kind of text it is; it has to end in one of {', '.join(_FORMATS)} "
        f"(for a folder write a pattern such as '{path.name or 'folder'}/*.jsonl'), or set hf_path=text|json|parquet"
    )
