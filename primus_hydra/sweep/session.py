"""What this process knows about its sweep from one call of the launcher to the next."""

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from primus_hydra.points import Point
from primus_hydra.report.rows import describe_differences
from primus_hydra.runs import Record
from primus_hydra.schema import Settings
from primus_hydra.sweep.execute import name_run
from primus_hydra.sweep.folders import held_sweep, read_if_there, write_invalid_record
from primus_hydra.sweep.judge import Seen, Standing, Verdict


@dataclass(kw_only=True, slots=True)
class Session:
    """One sweep in one process."""

    console: Console = field(default_factory=Console)
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """The lock of the sweep's folder, from the first call to the end."""
    folder: Path | None = None
    """None until its lock is held."""
    settings: Settings | None = None
    """Those of the first plan."""
    points: list[Point] = field(default_factory=list)
    """Of all calls."""
    seen: Seen = field(default_factory=dict)
    standings: list[Standing] = field(default_factory=list)
    """Of all calls that got as far as running something."""
    interrupted: bool = False

    def hold(self, folder: Path) -> None:
        """Make the sweep's folder and keep everybody else from starting runs there.

        Raises:
            OSError, RunFolderError: it cannot be made, or somebody else holds it.
        """
        if self.folder is None:
            self.held.enter_context(held_sweep(folder))
            self.folder = folder

    def describe_points(self) -> dict[int | None, str]:
        """Number -> what tells the point from all others so far; of a single point the name of its folder."""
        texts = describe_differences([point.overrides for point in self.points])
        return {point.number: text or point.folder.path.name for point, text in zip(self.points, texts, strict=True)}

    def record_refusals(self, standings: list[Standing]) -> None:
        """Write down what never runs, of this call and of earlier ones when the folder was not known yet.

        Raises:
            OSError: a folder cannot be written.
        """
        for standing in [*self.standings, *standings]:
            # The folder of a point that Hydra could not even compose is not known.
            if standing.verdict is Verdict.INVALID and standing.run.folder.path.parent == self.folder:
                write_invalid_record(standing.run)

    def completed(self, standings: list[Standing]) -> list[tuple[str, Record]]:
        """What people call it, and the record, of every run that is complete before this call runs anything."""
        differences = self.describe_points()
        before = [standing for standing in standings if standing.verdict is Verdict.DONE]
        plans = [standing.run.plan for standing in [*self.standings, *before] if standing.run.plan is not None]
        records = {plan.folder: (name_run(plan, differences), read_if_there(plan.folder)) for plan in plans}
        return [(name, record) for name, record in records.values() if record and record.get("state") == "completed"]
