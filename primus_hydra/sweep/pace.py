"""How one running attempt gets on, seen from its run folder alone."""

import statistics
from collections import deque
from collections.abc import Mapping
from typing import Any

from primus_hydra.launch import expected_steps
from primus_hydra.maxtext.metrics import MetricsTail, StepRecord
from primus_hydra.results import compute_result
from primus_hydra.runs import Record, RecordError, RunFolder

_KEPT_STEPS = 1000
"""Figures of a running attempt rest on its last so many steps, so that a long run costs no more than a short one."""
_ETA_STEPS = 20


class Pace:
    """Follows the metrics file of the attempt that one worker makes."""

    def __init__(self, folder: RunFolder, worker_pid: int) -> None:
        self._folder = folder
        self._worker_pid = worker_pid
        self._metrics: MetricsTail | None = None
        self._warmup_left = 0
        self._num_seen = 0
        self._measured: deque[StepRecord] = deque(maxlen=_KEPT_STEPS)
        self.total_steps: int | None = None
        """None while the attempt has not begun, and where it is not known."""
        self.latest: StepRecord | None = None
        """The newest finished step."""

    def look(self) -> bool:
        """Take what was added since the last look; returns whether there was a new step."""
        if self._metrics is None and not self._begin():
            return False
        assert self._metrics is not None
        records = self._metrics.poll()
        self._num_seen += len(records)
        for record in records:
            self.latest = record
            if self._warmup_left:
                self._warmup_left -= 1
            else:
                self._measured.append(record)
        return bool(records)

    def result(self) -> Mapping[str, Any]:
        """The figures so far, as `compute_result` gives them for the record."""
        return compute_result(tuple(self._measured), warmup_steps=0, child={}, max_rss_bytes=None)

    def rest_s(self) -> float | None:
        """Seconds to the last step, from the median of the newest steps; None until the warm-up is over.

        A single step without a warm-up is the one that compiles, and tells nothing.
        """
        times = [record.step_time_s for record in list(self._measured)[-_ETA_STEPS:] if record.step_time_s]
        if self.latest is None or self.total_steps is None or self._num_seen < 2 or not times:
            return None
        return max(0, self.total_steps - self.latest.step - 1) * statistics.median(times)

    def _begin(self) -> bool:
        """Whether the worker has begun. Until then the folder holds the files of an earlier attempt."""
        try:
            record = self._folder.read_record()
        except RecordError:
            return False
        if worker_pid(record) != self._worker_pid:
            return False
        self.total_steps = expected_steps(record["composed"])
        self._warmup_left = record["settings"]["run"]["warmup_steps"]
        self._metrics = MetricsTail(self._folder.metrics_jsonl)
        return True


def worker_pid(record: Record) -> int | None:
    """Process id of the worker that made a record's newest attempt; None where there was none."""
    worker = record.get("worker")
    return worker.get("pid") if isinstance(worker, Mapping) else None
