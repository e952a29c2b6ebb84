"""What composing gives: a plan that is ready to be written, or the reasons why there is none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from primus_hydra.environment import Environment
from primus_hydra.errors import Problem
from primus_hydra.flatten import Composition
from primus_hydra.identity import Identity, fingerprint, identify
from primus_hydra.redaction import split_secrets
from primus_hydra.runs import RunFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What one optimizer step trains on."""

    num_devices: int | None
    """All devices of the run; None where the platform does not say."""
    num_sequences: int | None
    """The global batch; None where the devices are unknown."""
    sequence_length: int
    """Tokens of one sequence (`max_target_length`)."""

    @property
    def num_tokens(self) -> int | None:
        """Positions of one step, padding included."""
        return None if self.num_sequences is None else self.num_sequences * self.sequence_length


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A run that was composed and checked, not yet written."""

    folder: RunFolder
    keys: dict[str, Any]
    """Every key MaxText is given."""
    origins: dict[str, str]
    """Key -> where it was set."""
    composition: Composition
    environment: Environment
    batch: Batch
    warnings: tuple[Problem, ...]
    overrides: tuple[str, ...]
    choices: dict[str, str]
    record_composition: Callable[[], dict[str, str]]
    """Makes Hydra's record of the composition, file name -> text, when the folder is written."""
    number: int | None = None
    """Position in the sweep, from 0; None for a run of its own."""
    repeat: int = 1
    """Which run of this point it is, from 1."""

    @property
    def identity(self) -> Identity:
        """What the run folder of this plan belongs to."""
        return identify(self.keys, self.environment.set, self.composition.settings.run.trainer)

    @property
    def fingerprint(self) -> str:
        """sha256 of the identity, in hexadecimal; repeats of a point share it."""
        return fingerprint(self.identity)

    @property
    def secret_env(self) -> dict[str, str]:
        """Variables that only the child's environment may hold."""
        token = self.composition.keys.get("hf_access_token")
        return split_secrets(self.environment.set)[1] | ({"HF_TOKEN": str(token)} if token else {})


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One composed configuration: ready to run, or refused."""

    number: int | None
    """Position in the sweep, from 0; None for a run of its own."""
    overrides: tuple[str, ...]
    """As typed, without `+`."""
    folder: RunFolder
    plan: Plan | None
    """None where the configuration is refused."""
    problems: tuple[Problem, ...]
    """Why it is refused; empty where there is a plan."""
    repeat: int = 1
    """Which run of this point it is, from 1."""
