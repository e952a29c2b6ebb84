"""Everything that a rule may look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from primus_hydra.platforms import Machine
from primus_hydra.schema import PlatformSettings

MISSING: Final = object()
"""Value of a subject that does not exist, such as a key that only another MaxText version has."""


@dataclass(frozen=True, kw_only=True)
class RuleContext:
    """One composed configuration, and where it is about to run."""

    keys: Mapping[str, Any]
    """Composed MaxText keys, in MaxText's types."""
    effective: Mapping[str, Any]
    """What MaxText will see: its defaults < base.yml < its model file < `keys`."""
    origins: Mapping[str, str]
    """Composed key -> where it came from, for a person."""
    platform: PlatformSettings
    """The machine that the run is meant for."""
    machine: Machine
    """The machine that this process runs on."""
    maxtext_version: str
    jax_version: str
    action: str
    """train, check or export."""
    env: Mapping[str, str]
    """The inherited environment."""
    run_dir: Path
    """Where the export will lie; may not exist yet."""
    custom_trainer: bool
    """True where `run.trainer` replaced the trainer: what it can run is not ours to judge."""
    accept: frozenset[str]
    """Names of rules that the user overrules."""

    def look_up(self, subject: str) -> Any:
        """Value of a MaxText key, or of one of our own facts; MISSING if there is none.

        Args:
            subject: `remat_policy`, or a dotted fact such as `platform.chip` or `env.JOB_INDEX`.
        """
        space, dot, name = subject.partition(".")
        if not dot:
            return self.effective.get(subject, MISSING)
        if space == "env":
            value = self.platform.env.get(name, self.env.get(name))
            return MISSING if value is None else value
        if space == "platform":
            return getattr(self.platform, name)
        return {
            "machine.num_gpus": len(self.machine.chips),
            "machine.transformer_engine": self.machine.transformer_engine,
            "run.action": self.action,
            "run.custom_trainer": self.custom_trainer,
            "jax.version": self.jax_version,
        }[subject]
