"""From a planned run folder to what the worker starts, and how it listens."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from primus_hydra.log_lines import LEVELS
from primus_hydra.runs import RecordError, RunFolder

_PACKAGE_ROOT = Path(__file__).parent.parent


def trainer_argv(folder: RunFolder, command: Mapping[str, Any]) -> list[str]:
    """The program and its arguments: our child, or the user's own trainer with MaxText's arguments."""
    if command["trainer"] is None:
        return [sys.executable, "-m", "primus_hydra.maxtext.child", str(folder.path)]
    return [*command["trainer"], *command["maxtext_args"]]


def child_environment(env: Mapping[str, str], command: Mapping[str, Any]) -> dict[str, str]:
    """`env` without what the plan removes."""
    child = {name: value for name, value in env.items() if name not in command["unset_env"]}
    if command["trainer"] is None and _PACKAGE_ROOT.name not in ("site-packages", "dist-packages"):
        # A plain checkout is importable from where the command was typed, but not from the run folder.
        child["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), child.get("PYTHONPATH", "")]))
    return child


def sink_levels(private: Mapping[str, Any]) -> tuple[int, int]:
    """Levels of train.log and of the console. `sink_level` overrides both, as in Primus."""
    names = [private.get("file_sink_level") or "DEBUG", private.get("stderr_sink_level") or "INFO"]
    levels = [LEVELS.get(str(private.get("sink_level") or name).upper()) for name in names]
    if levels[0] is None or levels[1] is None:
        raise RecordError(f"A sink level in {dict(private)} is unknown; known are {', '.join(LEVELS)}.")
    return levels[0], levels[1]
