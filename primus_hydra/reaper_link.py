"""The worker's end of `reaper.py`: start it, tell it what to do, read what it reports."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

KILL_PATIENCE_S = 15.0
"""Wait after SIGKILL; a process that is stuck in the kernel (a hung device or network file system) cannot be killed."""
_REAPER = Path(__file__).with_name("reaper.py")
_PR_SET_CHILD_SUBREAPER = 36
_PASSES = 20
_PASS_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """What to start."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The trainer's whole environment."""
    cwd: str
    lock_fd: int
    """Descriptor of the run folder's lock, held until the last process of the run is gone."""


class ReaperLink:
    """What is known from the reaper about the trainer."""

    def __init__(
        self, control: socket.socket, reaper: subprocess.Popen[bytes], others: Collection[psutil.Process]
    ) -> None:
        """Listen; `others` are children of this process that have nothing to do with the run."""
        assert reaper.stdout is not None
        self.control = control
        self.output_fd = reaper.stdout.fileno()
        """The trainer's output, not blocking."""
        self._reaper, self._others = reaper, others
        self.returncode: int | None = None
        self.max_rss_bytes: int | None = None
        self.problem = ""
        """What kept us from starting the trainer or from seeing its end."""
        self.closed = False
        """Whether nothing more will come."""
        self._pid: int | None = None
        self._inbox = b""
        os.set_blocking(self.output_fd, False)

    def terminate(self) -> None:
        """SIGTERM to the trainer's process group."""
        self._send(b"T")

    def kill(self) -> None:
        """SIGKILL to everything that descends from the trainer."""
        self._send(b"K")

    def read(self) -> None:
        """Take what the reaper reports; to be called when `control` is readable."""
        try:
            data = self.control.recv(4096)
        except OSError:
            data = b""
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self._pid = message.get("pid", self._pid)
            self.problem = message.get("error", self.problem)
            self.returncode = message.get("returncode", self.returncode)
            self.max_rss_bytes = message.get("max_rss_bytes", self.max_rss_bytes)
        self.closed = not data or self.returncode is not None or bool(self.problem)

    def replace_if_killed(self) -> None:
        """If the reaper ended without a word, do its work."""
        if self.returncode is None and not self.problem:
            self.problem = "the process that watched over it was killed"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._reaper.wait(KILL_PATIENCE_S)  # only then what it leaves behind is ours
            if self._pid is not None:
                with contextlib.suppress(OSError):
                    os.killpg(self._pid, signal.SIGKILL)
            _kill_children(self._others)

    def _send(self, command: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead reaper shows by the end of its stream
            self.control.sendall(command)


@contextlib.contextmanager
def started_reaper(launch: Launch) -> Iterator[ReaperLink]:
    """Start the reaper, and with it the trainer; at the end of the block nothing of them is left."""
    with contextlib.ExitStack() as stack:
        ours, theirs = socket.socketpair()
        stack.callback(theirs.close)
        others = psutil.Process().children()
        _adopt_orphans()
        reaper = subprocess.Popen(
            [sys.executable, "-P", str(_REAPER), str(theirs.fileno()), str(launch.lock_fd)],
            pass_fds=[theirs.fileno(), launch.lock_fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a signal to the terminal's group must not reach it
        )
        theirs.close()
        stack.callback(_let_go, reaper)
        stack.callback(ours.close)  # if anything raises: the reaper then kills everything and ends
        with contextlib.suppress(OSError):  # a reaper that died at once shows by the end of its stream
            ours.sendall(_spell(launch))
        yield ReaperLink(ours, reaper, others)


def _let_go(reaper: subprocess.Popen[bytes]) -> None:
    """Wait for the reaper's end, unless it is held up by a process that cannot be killed."""
    assert reaper.stdout is not None
    reaper.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        reaper.wait(timeout=KILL_PATIENCE_S)


def _spell(launch: Launch) -> bytes:
    spec = {"argv": list(launch.argv), "env": dict(launch.env), "cwd": launch.cwd}
    return json.dumps(spec).encode() + b"\n"


def _adopt_orphans() -> None:
    """Inherit what a killed reaper leaves behind, as the reaper inherits what the trainer leaves behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_children(others: Collection[psutil.Process]) -> None:
    """SIGKILL all that descends from this process, other children aside, until nobody is left."""
    for _ in range(_PASSES):
        ours = [child for child in psutil.Process().children() if child not in others]
        family = [*(process for child in ours for process in _list_descendants(child)), *ours]
        if not family:
            return
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(family, timeout=_PASS_S)


def _list_descendants(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []
