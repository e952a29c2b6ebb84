"""Run one trainer program under watch: its output, its end, its time limits, and a person's Ctrl-C.

One thread, one selector. The trainer is started by `reaper.py`, which see for what happens when this process dies.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import psutil

from primus_hydra.interrupts import CaughtSignals, caught_signals

TICK_S = 0.25
"""Longest wait between two looks at the metrics file and the time limits."""
_KILL_PATIENCE_S = 15.0
"""Wait after SIGKILL; a process that is stuck in the kernel (a hung device or network file system) cannot be killed."""
_DRAIN_S = 5.0
"""Wait for the end of the output once every process is gone."""
_CHUNK_BYTES = 1 << 16
_CHUNKS_PER_TURN = 64
_REAPER = Path(__file__).with_name("reaper.py")

StopReason = Literal["interrupted", "timeout", "hung"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """What to start."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The trainer's whole environment."""
    cwd: str
    lock_fd: int
    """Descriptor of the run folder's lock, held until the last process of the run is gone."""


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


class Observer(Protocol):
    """Who is told about the trainer."""

    def poll(self) -> None:
        """Look at the metrics file. Called before pending output is delivered."""

    def output(self, data: bytes) -> None:
        """Take what the trainer printed, in order."""

    def update(self) -> int:
        """Show progress; returns the number of steps finished so far."""


def supervise(launch: Launch, limits: Limits, observer: Observer) -> Exit:
    """Start the trainer, watch it to its end, leave no process behind."""
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(caught_signals())
        ours, theirs = socket.socketpair()
        stack.callback(theirs.close)
        reaper = subprocess.Popen(
            [sys.executable, "-P", str(_REAPER), str(theirs.fileno()), str(launch.lock_fd)],
            pass_fds=[theirs.fileno(), launch.lock_fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a signal to the terminal's group must not reach it
        )
        theirs.close()
        assert reaper.stdout is not None
        stack.callback(_let_go, reaper)
        stack.callback(ours.close)  # if anything raises: the reaper then kills everything and ends
        watch = _Watch(limits, observer, signals, ours, reaper.stdout.fileno())
        with contextlib.suppress(OSError):  # a reaper that died at once shows by the end of its stream
            ours.sendall(_spell(launch))
        return watch.run()


def _let_go(reaper: subprocess.Popen[bytes]) -> None:
    """Wait for the reaper's end, unless it is held up by a process that cannot be killed."""
    assert reaper.stdout is not None
    reaper.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        reaper.wait(timeout=_KILL_PATIENCE_S)


def _spell(launch: Launch) -> bytes:
    spec = {"argv": list(launch.argv), "env": dict(launch.env), "cwd": launch.cwd}
    return json.dumps(spec).encode() + b"\n"


class _Watch:
    """The loop over one trainer's life."""

    def __init__(
        self, limits: Limits, observer: Observer, signals: CaughtSignals, control: socket.socket, output_fd: int
    ) -> None:
        self._limits = limits
        self._observer = observer
        self._signals = signals
        self._control = control
        self._output_fd: int | None = output_fd
        self._inbox = b""
        self._pid: int | None = None
        self._ended: dict[str, int] | None = None
        self._problem = ""
        self._control_closed = False
        self._stop: StopReason | None = None
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._started_at = self._last_step_at = time.monotonic()
        self._num_steps = 0
        os.set_blocking(output_fd, False)

    def run(self) -> Exit:
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ, self._read_control)
            selector.register(self._signals.wakeup, selectors.EVENT_READ, self._read_wakeup)
            assert self._output_fd is not None
            output = selector.register(self._output_fd, selectors.EVENT_READ, self._read_output)
            while not self._control_closed:
                for key, _ in selector.select(TICK_S):
                    key.data()
                if self._output_fd is None and output.fd in selector.get_map():
                    selector.unregister(output.fd)
                self._look()
                self._enforce()
                if self._give_up_at is not None and time.monotonic() > self._give_up_at:
                    self._problem = "it could not be killed: it is stuck in the kernel and still there"
                    break
        self._finish()
        code = self._ended["returncode"] if self._ended else None
        return Exit(
            returncode=code,
            max_rss_bytes=self._ended["max_rss_bytes"] if self._ended else None,
            stop=self._stop,
            stop_signal=self._signals.arrived[0] if self._signals.arrived else None,
            problem=self._problem,
        )

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
        limits = self._limits
        if self._stop is None and self._signals.arrived:
            self._request_stop("interrupted", now)
        elif self._stop is None and limits.timeout_s is not None and now - self._started_at > limits.timeout_s:
            self._request_stop("timeout", now)
        elif self._stop is None and limits.hang_after_s is not None and now - self._last_step_at > limits.hang_after_s:
            self._request_stop("hung", now)
        impatient = self._stop == "interrupted" and len(self._signals.arrived) > 1
        if self._kill_at is not None and (now > self._kill_at or impatient):
            self._send(b"K")
            self._kill_at, self._give_up_at = None, now + _KILL_PATIENCE_S

    def _request_stop(self, reason: StopReason, now: float) -> None:
        self._stop = reason
        self._kill_at = now + self._limits.grace_s
        self._send(b"T")

    def _send(self, command: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead reaper shows by the end of its stream
            self._control.sendall(command)

    def _read_wakeup(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._signals.wakeup.recv(4096)

    def _read_control(self) -> None:
        try:
            data = self._control.recv(4096)
        except OSError:
            data = b""
        self._inbox += data
        *lines, self._inbox = self._inbox.split(b"\n")
        for line in lines:
            message = json.loads(line)
            self._pid = message.get("pid", self._pid)
            self._problem = message.get("error", self._problem)
            self._ended = message if "returncode" in message else self._ended
        self._control_closed = not data or self._ended is not None or bool(self._problem)

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
        if self._ended is None and not self._problem:
            self._problem = "the process that watched over it was killed"
            if self._pid is not None:
                _kill_family(self._pid)
        deadline = time.monotonic() + _DRAIN_S
        with selectors.DefaultSelector() as selector:
            if self._output_fd is not None:
                selector.register(self._output_fd, selectors.EVENT_READ)
            while self._output_fd is not None and (left := deadline - time.monotonic()) > 0 and selector.select(left):
                self._read_output()
        self._observer.poll()
        self._observer.update()


def _kill_family(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        trainer = psutil.Process(pid)
        for process in [*trainer.children(recursive=True), trainer]:
            with contextlib.suppress(psutil.Error):
                process.kill()
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
