"""Questions about paths that a user typed: any text gets an answer, where `pathlib` raises on names too long."""

from pathlib import Path


def exists(path: Path) -> bool:
    """Whether there is a file or folder of this name; a name that the system cannot have does not exist."""
    try:
        return path.exists()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether there is a file of this name; a name that the system cannot have is none."""
    return exists(path) and path.is_file()


def expand_user(path: str) -> Path:
    """The path with `~` replaced; left as it is where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
