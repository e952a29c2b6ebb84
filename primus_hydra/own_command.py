"""Commands of ours, as a person can type them where this program runs."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def own_command(module: str, *arguments: str) -> str:
    """`python -m MODULE ARGUMENTS`, quoted for a shell.

    Args:
        module: `primus_hydra`, or one of its modules.
        arguments: unquoted.

    Returns:
        It begins with `python` where that is the interpreter of this program, otherwise with its path.
    """
    return shlex.join([_name_interpreter(), "-m", module, *arguments])


def normalise(path: Path) -> Path:
    """The absolute path without `..`; links are followed only where that needs it."""
    return path.resolve() if ".." in path.parts else path.absolute()


def _name_interpreter() -> str:
    found = shutil.which("python")
    if not sys.executable or (found and _is_same(found, sys.executable)):
        return "python"
    return sys.executable


def _is_same(a: str, b: str) -> bool:
    """Whether both start the same environment: a virtual one is a folder whose programs are links to another's."""
    return os.path.realpath(a) == os.path.realpath(b) and Path(a).parent.samefile(Path(b).parent)
