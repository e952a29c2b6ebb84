"""Where our presets lie, and which config groups they make."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE_DIR = Path(__file__).resolve().parent


def conf_dir() -> Path:
    """The shipped presets: inside the package in a wheel, beside it in a checkout or editable install."""
    installed = PACKAGE_DIR / "conf"
    return installed if installed.is_dir() else PACKAGE_DIR.parent / "conf"


def list_groups(folders: Iterable[Path]) -> frozenset[str]:
    """Top-level config groups (folders that hold YAML files) in preset folders."""
    return frozenset(group for folder in folders for group in _groups_in(folder))


@cache
def _groups_in(folder: Path) -> tuple[str, ...]:
    """Every override of every point of a sweep asks for these."""
    children = folder.iterdir() if folder.is_dir() else ()
    return tuple(child.name for child in children if next(child.glob("*.yaml"), None))


def list_choices(folders: Iterable[Path], group: str) -> list[str]:
    """Names of the presets of one group."""
    return sorted({name for folder in folders for name in _names_in(folder / group)})


@cache
def _names_in(folder: Path) -> tuple[str, ...]:
    return tuple(file.stem for file in folder.glob("*.yaml"))
