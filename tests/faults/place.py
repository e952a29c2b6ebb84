"""Where one sweep is hurt, and how it is started there."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.moments import Freeze
from tests.faults.processes import MARK

_REPOSITORY = Path(__file__).resolve().parents[2]
_STARTUP = Path(__file__).with_name("startup")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder with the sweep in it, and beside that what the campaign keeps for itself."""

    folder: Path
    mark: str
    """Value of the variable by which all processes of the sweep are found."""

    @property
    def sweep(self) -> Path:
        """The sweep's folder."""
        return self.folder / "sweep"

    @property
    def journal(self) -> Path:
        """What trainers say that they did."""
        return self.folder / "journal.jsonl"

    @property
    def token(self) -> Path:
        """Where a frozen process leaves its pid."""
        return self.folder / "frozen"

    def start(self, command: Sequence[str], log: Path, freeze: Freeze | None = None) -> subprocess.Popen[bytes]:
        """Start the program, in a session of its own; what it says goes to `log`."""
        path = [str(_STARTUP), str(_REPOSITORY)] if freeze else [str(_REPOSITORY)]
        env = {
            **os.environ,
            MARK: self.mark,
            "STUB_JOURNAL": str(self.journal),
            "PYTHONPATH": os.pathsep.join(path),
            **({"FAULT_FREEZE": freeze.order(self.sweep)} if freeze else {}),
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "primus_hydra", *command],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
