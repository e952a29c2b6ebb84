"""One attempt at one job of a sweep, from the start of its worker to its end."""

import os
import time

from primus_hydra.runs import RunFolderError, RunLockedError
from primus_hydra.sweep.ending import Ending, read_ending
from primus_hydra.sweep.job import Job
from primus_hydra.sweep.live import Glance
from primus_hydra.sweep.pace import Pace
from primus_hydra.sweep.slots import Slot
from primus_hydra.sweep.slow import Fastest, describe_slowness
from primus_hydra.sweep.worker_process import WorkerProcess

_LEFTOVERS_S = 60.0
"""Wait for what a killed worker left behind. Longer means that it is stuck in the kernel, and will stay."""


class Attempt:
    """A job in a slot. The slot is taken until `has_left` is true."""

    def __init__(self, job: Job, slot: Slot, number: int) -> None:
        """Start the worker; `number` counts the attempts of this sweep at the job, from 1.

        Raises:
            OSError: the machine cannot start another process.
        """
        env = {**os.environ, **slot.env, **job.secret_env}
        self.worker = WorkerProcess(job.folder, fingerprint=job.fingerprint, env=env)
        self.job, self.slot, self.number = job, slot, number
        self.ending: Ending | None = None
        """None while the worker is there."""
        self.is_repeated = False
        """Whether another attempt follows it, in the same slot."""
        self._pace = Pace(job.folder, self.worker.pid)
        self._started_at = time.monotonic()
        self._give_up_at = 0.0
        self._told_to_stop = False

    def close(self) -> Ending:
        """Learn what became of it; called when the worker's output has ended."""
        exit_code = self.worker.wait()
        self.ending = read_ending(self.job.folder, pid=self.worker.pid, exit_code=exit_code, output=self.worker.output)
        self._give_up_at = time.monotonic() + _LEFTOVERS_S
        return self.ending

    def look(self, fastest: Fastest, stop_below: float | None) -> Glance:
        """See how it gets on, and have it stopped if it is slower than `stop_below` of the fastest."""
        if self._pace.look() and stop_below is not None and not self._told_to_stop:
            reason = describe_slowness(self._pace.result(), fastest, stop_below)
            if reason:
                self._told_to_stop = True
                self.worker.stop("slow", reason)
        return Glance(
            differs=self.job.differs,
            latest=self._pace.latest,
            total_steps=self._pace.total_steps,
            elapsed_s=time.monotonic() - self._started_at,
            rest_s=self._pace.rest_s(),
        )

    def has_left(self) -> bool:
        """Whether its slot can be used again: nothing of it runs any more, or never will end.

        A killed worker's trainer takes a moment to die; until then it has the folder's lock, and its GPUs.
        """
        if self.ending is None:
            return False
        if self.ending.state != "abandoned" or time.monotonic() > self._give_up_at:
            return True
        try:
            with self.job.folder.locked():
                return True
        except RunLockedError:
            return False
        except RunFolderError:  # the folder is gone
            return True
