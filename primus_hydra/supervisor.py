"""Watch one trainer program: its output, its end, its time limits, a person's Ctrl-C, and the program that started us.

One thread, one selector. The trainer is started by `reaper.py`, which see for what happens when this process dies.
"""

import contextlib
import os
import selectors
import time
from dataclasses import dataclass
from typing import Literal, Protocol

from primus_hydra.interrupts import CaughtSignals
from primus_hydra.parent import ParentLink, StopOrder
from primus_hydra.reaper_link import KILL_PATIENCE_S, Launch, ReaperLink, started_reaper

TICK_S = 0.25
"""Longest wait between two looks at the metrics file and the time limits."""
_DRAIN_S = 5.0
"""Wait for the end of the output once every process is gone."""
_CHUNK_BYTES = 1 << 16
_CHUNKS_PER_TURN = 64

StopReason = Literal["interrupted", "ordered", "orphaned", "timeout", "hung"]
"""`ordered`: by the program that started us; `orphaned`: that program died."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When to stop a trainer."""

    timeout_s: float | None
    hang_after_s: float | None
    """Seconds without a finished step, compilation included."""
    grace_s: float
    """Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How a trainer ended."""

    returncode: int | None
    """Exit code; negative: the signal that ended it; None: unknown, see `problem`."""
    max_rss_bytes: int | None
    """Peak resident memory of the trainer's largest process, the kernel's own count."""
    stop: StopReason | None
    """Why we stopped it; None where it ended by itself."""
    stop_signal: int | None
    """The signal that interrupted us."""
    problem: str
    """What kept us from starting it or from seeing its end; empty if nothing."""
    order: StopOrder | None = None
    """What the program that started us said, where `stop` is `ordered`."""


class Observer(Protocol):
    """Who is told about the trainer."""

    def poll(self) -> None:
        """Look at the metrics file. Called before pending output is delivered."""

    def output(self, data: bytes) -> None:
        """Take what the trainer printed, in order."""

    def update(self) -> int:
        """Show progress; returns the number of steps finished so far."""


def supervise(
    launch: Launch, limits: Limits, observer: Observer, *, signals: CaughtSignals, parent: ParentLink | None = None
) -> Exit:
    """Start the trainer, watch it to its end, leave no process behind.

    Args:
        launch: what to start.
        limits: when to stop it.
        observer: who is told about it.
        signals: any that arrives stops it; a second one does not wait for `grace_s`.
        parent: the program that may order a stop, and whose death is one; None: nobody may.
    """
    with started_reaper(launch) as reaper:
        return _Watch(limits, observer, signals, reaper, parent).run()


class _Watch:
    """The loop over one trainer's life."""

    def __init__(
        self,
        limits: Limits,
        observer: Observer,
        signals: CaughtSignals,
        reaper: ReaperLink,
        parent: ParentLink | None,
    ) -> None:
        self._limits = limits
        self._observer = observer
        self._signals = signals
        self._reaper = reaper
        self._parent = parent
        self._output_fd: int | None = reaper.output_fd
        self._stop: StopReason | None = None
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._started_at = self._last_step_at = time.monotonic()
        self._num_steps = 0

    def run(self) -> Exit:
        with selectors.DefaultSelector() as selector:
            selector.register(self._reaper.control, selectors.EVENT_READ, self._reaper.read)
            selector.register(self._signals.wakeup, selectors.EVENT_READ, self._read_wakeup)
            selector.register(self._reaper.output_fd, selectors.EVENT_READ, self._read_output)
            if self._parent is not None:
                selector.register(self._parent.descriptor, selectors.EVENT_READ, self._parent.read)
            while not self._reaper.closed:
                for key, _ in selector.select(TICK_S):
                    key.data()
                self._forget_closed(selector)
                self._look()
                self._enforce()
                if self._give_up_at is not None and time.monotonic() > self._give_up_at:
                    self._reaper.problem = "it could not be killed: it is stuck in the kernel and still there"
                    break
        self._finish()
        return Exit(
            returncode=self._reaper.returncode,
            max_rss_bytes=self._reaper.max_rss_bytes,
            stop=self._stop,
            stop_signal=self._signals.arrived[0] if self._signals.arrived else None,
            problem=self._reaper.problem,
            order=self._parent.order if self._parent and self._stop == "ordered" else None,
        )

    def _forget_closed(self, selector: selectors.BaseSelector) -> None:
        """A stream that has ended is readable for ever."""
        watched = selector.get_map()
        if self._output_fd is None and self._reaper.output_fd in watched:
            selector.unregister(self._reaper.output_fd)
        if self._parent is not None and self._parent.gone and self._parent.descriptor in watched:
            selector.unregister(self._parent.descriptor)

    def _look(self) -> None:
        # MaxText prints a step's line before it writes the step's metrics, and truncates the file at every
        # evaluation. Taking the metrics first and then all pending output means that no line of an earlier
        # step is still on its way when a later step's metrics are shown.
        self._observer.poll()
        self._read_output()
        steps = self._observer.update()
        if steps > self._num_steps:
            self._num_steps, self._last_step_at = steps, time.monotonic()

    def _enforce(self) -> None:
        now = time.monotonic()
        if self._stop is None and (reason := self._find_reason_to_stop(now)):
            self._stop = reason
            self._kill_at = now + self._limits.grace_s
            self._reaper.terminate()
        impatient = len(self._signals.arrived) > 1
        if self._kill_at is not None and (now > self._kill_at or impatient):
            self._reaper.kill()
            self._kill_at, self._give_up_at = None, now + KILL_PATIENCE_S

    def _find_reason_to_stop(self, now: float) -> StopReason | None:
        limits = self._limits
        if self._signals.arrived:
            return "interrupted"
        if self._parent is not None and self._parent.order is not None:
            return "ordered"
        if self._parent is not None and self._parent.gone:
            return "orphaned"
        if limits.timeout_s is not None and now - self._started_at > limits.timeout_s:
            return "timeout"
        if limits.hang_after_s is not None and now - self._last_step_at > limits.hang_after_s:
            return "hung"
        return None

    def _read_wakeup(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._signals.wakeup.recv(4096)

    def _read_output(self) -> None:
        """Deliver what is there, up to a bound: a trainer that never stops printing must not stop our clock."""
        for _ in range(_CHUNKS_PER_TURN):
            if self._output_fd is None:
                return
            try:
                data = os.read(self._output_fd, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._output_fd = None
                return
            self._observer.output(data)

    def _finish(self) -> None:
        """Deliver the rest of the output; if the reaper was killed, do its work."""
        if self._stop is None and self._signals.arrived:
            self._stop = "interrupted"  # the same signal ended the trainer before we could
        self._reaper.replace_if_killed()
        deadline = time.monotonic() + _DRAIN_S
        with selectors.DefaultSelector() as selector:
            if self._output_fd is not None:
                selector.register(self._output_fd, selectors.EVENT_READ)
            while self._output_fd is not None and (left := deadline - time.monotonic()) > 0 and selector.select(left):
                self._read_output()
        self._observer.poll()
        self._observer.update()
