"""What became of the points, read back from their run folders."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from primus_hydra import worker
from primus_hydra.objective import OBJECTIVES, Objective, read_score
from primus_hydra.points import Point
from primus_hydra.runs import Record, RunFolder
from primus_hydra.sweep.judge import Standing, Verdict
from primus_hydra.sweep.records import read_if_there


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one point."""

    point: Point
    record: Record | None
    """Content of run.json, of the first repeat where there are several; None where the point has no run folder."""
    scores: tuple[float | None, ...]
    """One figure per name in `sweep.objective`, of repeats the median; None unless completed with a finite figure."""


def read_outcome(point: Point, standings: Iterable[Standing], objectives: Sequence[str]) -> Outcome:
    """The outcome of a point; of one that trains what another trains, the other's.

    Args:
        point: as it was composed.
        standings: of its repeats, the first one first.
        objectives: names of figures.
    """
    runs = [standing.same_as or standing.run for standing in standings]
    records = [None if run.plan is None else read_if_there(run.folder) for run in runs]
    return Outcome(
        point=point,
        record=records[0],
        scores=tuple(_read_median(records, OBJECTIVES[name]) for name in objectives),
    )


def _read_median(records: Iterable[Record | None], objective: Objective) -> float | None:
    scores = [score for record in records if record and (score := read_score(record, objective)) is not None]
    return statistics.median(scores) if scores else None


def sweep_exit_code(standings: Iterable[Standing]) -> int:
    """1 where something that was to run is refused, failed, or was not reached; 0 otherwise."""
    return max(map(_run_exit_code, standings), default=0)


def _run_exit_code(standing: Standing) -> int:
    if standing.verdict is Verdict.INVALID:
        return worker.EXIT_FAILED
    if not standing.starts:
        return 0
    return 0 if is_settled(standing.run.folder) else worker.EXIT_FAILED


def is_settled(folder: RunFolder) -> bool:
    """Whether a run completed, or was stopped early on purpose."""
    record = read_if_there(folder)
    return record is not None and worker.exit_code(record) == 0
