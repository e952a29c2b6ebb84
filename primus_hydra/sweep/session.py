"""What this process knows about its sweep from one call of the launcher to the next."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from primus_hydra.grammar import typed_name
from primus_hydra.hydra_job import shared_names
from primus_hydra.points import Point
from primus_hydra.report.short_names import describe_differences
from primus_hydra.runs import Record, RunFolder
from primus_hydra.schema import Settings
from primus_hydra.sweep.execute import name_run
from primus_hydra.sweep.hold import held_sweep
from primus_hydra.sweep.judge import Seen, Standing, Verdict
from primus_hydra.sweep.records import read_if_there, write_invalid_record


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
    is_search: bool = False
    """Whether a sweeper that needs results chooses the points, some at a time."""
    num_trials: int | None = None
    """All that such a sweeper makes; None where it does not tell."""

    def hold(self, folder: Path) -> None:
        """Make the sweep's folder and keep everybody else from starting runs there.

        Raises:
            OSError, RunFolderError: it cannot be made, or somebody else holds it.
        """
        if self.folder is None:
            self.held.enter_context(held_sweep(folder))
            self.folder = folder

    def describe_points(self) -> dict[int | None, str]:
        """Number -> what tells the point from all others; all that is searched where the others are yet to come.

        The name of its folder where that is nothing.
        """
        overrides = [point.overrides for point in self.points]
        if self.is_search or len(overrides) == 1:
            texts = [describe_swept(those) for those in overrides]
        else:
            texts = describe_differences(overrides)
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
        """What people call it, and the record, of every run that is complete before this call runs anything.

        Runs in the sweep's folder that this start has no point for count as well: the table ranks them, too.
        """
        differences = self.describe_points()
        names = {standing.run.folder: name_run(standing.run, differences) for standing in [*self.standings, *standings]}
        folders = [RunFolder(file.parent) for file in sorted(self.folder.glob("*/run.json"))] if self.folder else []
        records = [(folder, read_if_there(folder)) for folder in folders]
        return [
            (names.get(folder) or _name_record(record, folder), record)
            for folder, record in records
            if record and record.get("state") == "completed"
        ]


def describe_swept(overrides: Sequence[str]) -> str:
    """The overrides of a point whose names have several values in the sweep."""
    shared = shared_names()
    return " ".join(text for text in overrides if typed_name(text) not in shared)


def _name_record(record: Record, folder: RunFolder) -> str:
    """What people call a run that an earlier start made."""
    overrides = record.get("overrides")
    swept = describe_swept([str(text) for text in overrides]) if isinstance(overrides, list) else ""
    return f"{record.get('point')} {swept}" if swept else folder.path.name
