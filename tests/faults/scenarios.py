"""The sweeps that are hurt: small ones that have everything in them that a sweep can have."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.run_folders import STUB_TRAINER

FAILURE = "told to fail at step 3"
"""What the trainer of a point that fails says."""
_ILLEGAL = "{quantization: nanoo_fp8, gradient_accumulation_steps: 4}"
_COMMON = (
    "model=tiny",
    "platform=cpu",
    "run.grace_s=3",
    f"run.trainer=[{sys.executable},{STUB_TRAINER}]",
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One sweep."""

    name: str
    settings: Sequence[str]
    stubs: Sequence[str | None]
    """What each point's trainer does; None: a point that is refused."""
    endings: Mapping[int, str]
    """Number of a point -> the state that it has at the end; `completed` where it is not listed."""

    def command(self, folder: Path) -> list[str]:
        """What a person types."""
        points = [_ILLEGAL if stub is None else f'{{platform.env.STUB: "noise {stub}"}}' for stub in self.stubs]
        return ["--multirun", *_COMMON, *self.settings, f"sweep.points=[{','.join(points)}]", f"sweep.dir={folder}"]

    def ending(self, number: int) -> str:
        """State of a point at the end."""
        return self.endings.get(number, "completed")


SCENARIOS = (
    Scenario(
        name="one at a time",
        settings=("steps=8",),
        stubs=("step_s=0.01", "step_s=0.02", "fail_at=3", None, "grandchildren", "step_s=0.05", "step_s=0.03"),
        endings={2: "failed", 3: "invalid"},
    ),
    Scenario(
        name="two at a time, twice each",
        settings=("steps=8", "sweep.max_parallel=2", "sweep.repeats=2"),
        stubs=("step_s=0.02", None, "fail_at=3", "step_s=0.05", "step_s=0.03"),
        endings={1: "invalid", 2: "failed"},
    ),
    Scenario(
        name="rungs",
        settings=("steps=24", "sweep.rungs=[8,16]", "sweep.max_parallel=2"),
        stubs=("step_s=0.02", "step_s=0.01", None, "fail_at=3", "step_s=0.03", "step_s=0.015"),
        endings={2: "invalid", 3: "failed"},
    ),
    Scenario(
        name="retries",
        settings=("steps=8", "sweep.max_parallel=2", "sweep.retries=2"),
        stubs=("crash_once step_s=0.02", "step_s=0.05", "fail_at=3", None, "step_s=0.04", "crash_once step_s=0.03"),
        endings={2: "failed", 3: "invalid"},
    ),
)
