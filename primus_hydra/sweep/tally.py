"""What became of the jobs of a sweep so far, and how long the rest may take. Pure: no files, no clock."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from primus_hydra.objective import Objective, read_score
from primus_hydra.runs import Record
from primus_hydra.sweep.ending import Ending
from primus_hydra.sweep.slow import Fastest


class Tally:
    """Counts, the best point, the fastest one, and how long completed ones took."""

    def __init__(
        self,
        objective: Objective,
        num_jobs: int | None,
        completed: Iterable[tuple[str, Record]],
        *,
        num_before: int = 0,
    ) -> None:
        """Begin.

        Args:
            objective: what "best" means.
            num_jobs: all that are counted; None where a search does not tell how many there will be.
            completed: what people call it, and run.json, of points that were completed before.
            num_before: of the jobs that are counted, those that came to their end before.
        """
        self.objective = objective
        self._num_jobs, self._num_before = num_jobs, num_before
        self.states: Counter[str] = Counter()
        """State -> jobs that ended so."""
        self.best: tuple[float, str] | None = None
        """Best score, and what people call the point."""
        self.fastest = Fastest()
        self.walls_s: list[float] = []
        """Durations of completed points, seconds."""
        for differs, record in completed:
            self._compare(differs, record)

    @property
    def position(self) -> str:
        """`3/16`: jobs that came to their end, of how many; `3` where that is not known."""
        ended = self._num_before + self.states.total()
        return str(ended) if self._num_jobs is None else f"{ended}/{self._num_jobs}"

    def add(self, differs: str, ending: Ending) -> bool:
        """Take one job's end; returns whether it is the best point so far."""
        self.states[ending.state] += 1
        return self._compare(differs, ending.record)

    def _compare(self, differs: str, record: Record) -> bool:
        if record.get("state") != "completed":
            return False
        self.fastest = self.fastest.including(record.get("result") or {})
        self.walls_s += [wall_s] if isinstance(wall_s := record.get("wall_s"), int | float) else []
        score = read_score(record, self.objective)
        if score is None:
            return False
        if self.best is not None and (score <= self.best[0] if self.objective.maximize else score >= self.best[0]):
            return False
        self.best = score, differs
        return True


def estimate_rest_s(
    walls_s: Sequence[float], running: Sequence[tuple[float, float | None]], *, num_waiting: int, num_slots: int
) -> float | None:
    """Seconds until the last job ends; None while nothing is known.

    Jobs that wait are taken to last as long as the median of the completed ones; before there is any, as long as the
    running ones are going to.

    Args:
        walls_s: durations of completed jobs.
        running: (seconds since its start, seconds that it still needs or None) of each running job.
        num_waiting: jobs that have not started.
        num_slots: jobs that run at the same time.
    """
    known = list(walls_s) or [elapsed + rest for elapsed, rest in running if rest is not None]
    if not known:
        return None
    typical = statistics.median(known)
    rests = [max(0.0, typical - elapsed) if rest is None else rest for elapsed, rest in running]
    return max([(sum(rests) + num_waiting * typical) / max(1, num_slots), *rests])
