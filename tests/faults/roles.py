"""What a process of a sweep is, told by its command line."""

from collections.abc import Sequence
from typing import Literal

Role = Literal["parent", "worker", "reaper", "child", "other"]


def tell_role(command: Sequence[str]) -> Role:
    """`child` is the trainer; `other` what the trainer started."""
    if "primus_hydra" in command:
        return "parent"
    if "primus_hydra.worker" in command:
        return "worker"
    if any(word.endswith("primus_hydra/reaper.py") for word in command):
        return "reaper"
    return "child" if any(word.endswith("stub_trainer.py") for word in command) else "other"
