"""What the pool is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from primus_hydra.objective import Objective
from primus_hydra.runs import RunFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run folder to execute."""

    folder: RunFolder
    fingerprint: str
    """Of the plan that the folder must hold."""
    differs: str
    """What people call it, for example `3 remat_policy=full`."""
    secret_env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the trainer that no file may hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What happens about failures and slow points."""

    objective: Objective
    """What "the best so far" means."""
    retries: int = 0
    """Further attempts after a crash, a hang or a worker that died."""
    fail_fast: bool = False
    """Start nothing more after a failure."""
    stop_below: float | None = None
    """Stop a point below this fraction of the fastest completed point's speed; None: never."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """How far a search was before a batch of its trials."""

    num_before: int
    num_all: int | None
    """Trials that the search makes; None where its sweeper does not tell."""
