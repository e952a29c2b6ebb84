"""Execute written run folders by worker processes, several at once.

One thread, one selector: it waits for the end of a worker, for a signal, and at most a second.
"""

import contextlib
import selectors
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from primus_hydra.interrupts import CaughtSignals, caught_signals
from primus_hydra.runs import Record
from primus_hydra.sweep.attempt import Attempt
from primus_hydra.sweep.ending import Ending
from primus_hydra.sweep.job import Job, Policy, Trials
from primus_hydra.sweep.live import SweepView
from primus_hydra.sweep.slots import Slot
from primus_hydra.sweep.tally import Tally

TICK_S = 1.0
"""Between two looks at the running folders."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What the run folders do not tell."""

    interrupted: bool
    """Whether a signal ended the sweep: Ctrl-C, SIGTERM, SIGHUP."""
    not_started: tuple[Job, ...]
    """Jobs that no worker was started on: after an interruption, or after a failure with `fail_fast`."""
    refused: tuple[Job, ...]
    """Jobs whose folder could not be executed, and whose record is as it was; the reasons were told."""


def run_jobs(
    jobs: Sequence[Job],
    *,
    slots: Sequence[Slot],
    policy: Policy,
    view: SweepView,
    completed: Iterable[tuple[str, Record]] = (),
    trials: Trials | None = None,
) -> Ended:
    """Execute every job's folder, in order, as many at a time as there are slots.

    Results are in the folders. No worker is left when this returns or raises, and if this process dies, the workers
    stop their runs themselves. Signals are caught in the main thread only.

    Args:
        jobs: written run folders.
        slots: places for running jobs.
        policy: what happens about failures and slow points.
        view: who is told.
        completed: what people call it, and run.json, of points that are complete already: what jobs are compared with.
        trials: how the jobs are counted where a search launches them one batch after the other.
    """
    tally = (
        Tally(policy.objective, len(jobs), completed)
        if trials is None
        else Tally(policy.objective, trials.num_all, completed, num_before=trials.num_before)
    )
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(caught_signals())
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(signals.wakeup, selectors.EVENT_READ)
        pool = _Pool(jobs, slots, policy, view, tally, signals, selector)
        stack.callback(pool.let_go)
        return pool.run()


class _Pool:
    """The loop over all jobs of one call."""

    def __init__(
        self,
        jobs: Sequence[Job],
        slots: Sequence[Slot],
        policy: Policy,
        view: SweepView,
        tally: Tally,
        signals: CaughtSignals,
        selector: selectors.BaseSelector,
    ) -> None:
        self._waiting = deque(jobs)
        self._free = deque(slots)
        self._num_slots = len(slots)
        self._policy, self._view, self._tally = policy, view, tally
        self._signals, self._selector = signals, selector
        self._running: list[Attempt] = []
        self._leaving: list[Attempt] = []
        """Attempts that have ended and whose slot is not free yet."""
        self._refused: list[Job] = []
        self._num_signals = 0
        self._failed = False
        self._look_at = 0.0

    def run(self) -> Ended:
        while True:
            self._obey_signals()
            self._free_slots()
            while self._free and self._waiting and self._starts_more:
                self._start(self._waiting.popleft(), self._free.popleft(), attempt=1)
            if not self._running and not self._leaving:
                break
            if time.monotonic() >= self._look_at:
                self._look()
            for key, _ in self._selector.select(max(0.0, self._look_at - time.monotonic())):
                if isinstance(key.data, Attempt) and not key.data.worker.read_output():
                    self._close(key.data)
        return Ended(
            interrupted=bool(self._num_signals), not_started=tuple(self._waiting), refused=tuple(self._refused)
        )

    def let_go(self) -> None:
        """Have every worker that is left stop its run; there is none unless our own code failed."""
        for attempt in self._running:
            attempt.worker.let_go()

    @property
    def _starts_more(self) -> bool:
        return not self._num_signals and not (self._failed and self._policy.fail_fast)

    def _obey_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._signals.wakeup.recv(4096)
        is_first, num_arrived = not self._num_signals, len(self._signals.arrived)
        if num_arrived == self._num_signals:
            return
        self._num_signals = num_arrived
        for attempt in self._running:
            attempt.worker.interrupt()
            if num_arrived > 1:
                attempt.worker.hurry()
        if is_first and self._running:
            self._view.say(f"Stopping what runs ({len(self._running)}). Once more: kill it at once.")

    def _start(self, job: Job, slot: Slot, *, attempt: int) -> None:
        try:
            started = Attempt(job, slot, attempt)
        except OSError as error:
            reason = f"No worker could be started on {job.folder.path}: {error}."
            self._free.append(slot)
            self._end(job, Ending(state="refused", reason=reason))
            return
        self._running.append(started)
        self._selector.register(started.worker.output_fd, selectors.EVENT_READ, started)
        self._view.tell_start(job.differs, slot=slot.name, attempt=attempt)

    def _close(self, attempt: Attempt) -> None:
        self._selector.unregister(attempt.worker.output_fd)
        self._running.remove(attempt)
        self._leaving.append(attempt)
        self._look_at = 0.0  # what is shown has changed
        ending = attempt.close()
        if self._starts_more and ending.is_worth_a_retry and attempt.number <= self._policy.retries:
            attempt.is_repeated = True
            self._view.tell_retry(attempt.job.differs, ending)
        else:
            self._end(attempt.job, ending)

    def _free_slots(self) -> None:
        for attempt in list(self._leaving):
            if not attempt.has_left() and self._num_signals < 2:
                continue
            self._leaving.remove(attempt)
            if attempt.is_repeated and self._starts_more:
                self._start(attempt.job, attempt.slot, attempt=attempt.number + 1)
                continue
            self._free.append(attempt.slot)
            if attempt.is_repeated and attempt.ending:
                self._end(attempt.job, attempt.ending)

    def _end(self, job: Job, ending: Ending) -> None:
        if ending.state == "refused":
            self._refused.append(job)
        self._failed = self._failed or ending.is_failure
        is_best = self._tally.add(job.differs, ending)
        self._view.tell_end(job.differs, ending, self._tally, is_best=is_best)

    def _look(self) -> None:
        self._look_at = time.monotonic() + TICK_S
        self._view.update(
            [attempt.look(self._tally.fastest, self._policy.stop_below) for attempt in self._running],
            self._tally,
            num_waiting=len(self._waiting) if self._starts_more else 0,
            num_slots=self._num_slots,
        )
