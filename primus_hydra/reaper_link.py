"""The worker's end of `reaper.py`: start it, tell it what to do, read what it reports."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

KILL_PATIENCE_S = 15.0
"""Wait after SIGKILL; a process that is stuck in the kernel (a hung device or network file system) cannot be killed."""
_REAPER = Path(__file__).with_name("reaper.py")


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

    def __init__(self, control: socket.socket, output_fd: int) -> None:
        self.control = control
        self.output_fd = output_fd
        """The trainer's output, not blocking."""
        self.returncode: int | None = None
        self.max_rss_bytes: int | None = None
        self.problem = ""
        """What kept us from starting the trainer or from seeing its end."""
        self.closed = False
        """Whether nothing more will come."""
        self._pid: int | None = None
        self._inbox = b""
        os.set_blocking(output_fd, False)

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
            if self._pid is not None:
                _kill_family(self._pid)

    def _send(self, command: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead reaper shows by the end of its stream
            self.control.sendall(command)


@contextlib.contextmanager
def started_reaper(launch: Launch) -> Iterator[ReaperLink]:
    """Start the reaper, and with it the trainer; at the end of the block nothing of them is left."""
    with contextlib.ExitStack() as stack:
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
        with contextlib.suppress(OSError):  # a reaper that died at once shows by the end of its stream
            ours.sendall(_spell(launch))
        yield ReaperLink(ours, reaper.stdout.fileno())


def _let_go(reaper: subprocess.Popen[bytes]) -> None:
    """Wait for the reaper's end, unless it is held up by a process that cannot be killed."""
    assert reaper.stdout is not None
    reaper.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        reaper.wait(timeout=KILL_PATIENCE_S)


def _spell(launch: Launch) -> bytes:
    spec = {"argv": list(launch.argv), "env": dict(launch.env), "cwd": launch.cwd}
    return json.dumps(spec).encode() + b"\n"


def _kill_family(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        trainer = psutil.Process(pid)
        for process in [*trainer.children(recursive=True), trainer]:
            with contextlib.suppress(psutil.Error):
                process.kill()
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
