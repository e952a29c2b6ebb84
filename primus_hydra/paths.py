"""Where our presets lie, and which config groups they make."""

from collections.abc import Iterable
from pathlib import Path

PACKAGE_DIR = Path(__file__).resolve().parent


def conf_dir() -> Path:
    """The shipped presets: inside the package in a wheel, beside it in a checkout or editable install."""
    installed = PACKAGE_DIR / "conf"
    return installed if installed.is_dir() else PACKAGE_DIR.parent / "conf"


def list_groups(folders: Iterable[Path]) -> frozenset[str]:
    """Top-level config groups (folders that hold YAML files) in preset folders."""
    return frozenset(
        child.name
        for folder in folders
        if folder.is_dir()
        for child in folder.iterdir()
        if next(child.glob("*.yaml"), None)
    )


def list_choices(folders: Iterable[Path], group: str) -> list[str]:
    """Names of the presets of one group."""
    return sorted({file.stem for folder in folders for file in (folder / group).glob("*.yaml")})
