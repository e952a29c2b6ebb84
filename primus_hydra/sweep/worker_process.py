"""A worker process of this sweep, and the two ways to tell it something: its standard input, and signals.

The worker's standard input is a pipe that only this process holds. The end of the pipe tells the worker that we are
dead, however we died, and it then stops its run. A session of its own keeps a terminal's Ctrl-C away: we decide.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Literal

from primus_hydra.runs import RunFolder

_CHUNK_BYTES = 1 << 16
_KEPT_BYTES = 1 << 13
_LAST_WORDS_S = 5.0
"""Wait for a process whose output has ended: only its death ends it."""

StopWord = Literal["slow", "rung"]


class WorkerProcess:
    """One `python -m primus_hydra.worker`, on one run folder."""

    def __init__(self, folder: RunFolder, *, fingerprint: str, env: Mapping[str, str]) -> None:
        """Start it.

        Args:
            folder: what it executes.
            fingerprint: of the plan that must be in the folder.
            env: its whole environment.

        Raises:
            OSError: the machine cannot start another process.
        """
        command = [sys.executable, "-m", "primus_hydra.worker", str(folder.path), "--under-parent"]
        self._process = subprocess.Popen(
            [*command, "--expect", fingerprint],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._tail = b""
        os.set_blocking(self._stdout.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def output_fd(self) -> int:
        """Readable when it printed something or is gone."""
        return self._stdout.fileno()

    @property
    def output(self) -> str:
        """The end of what it printed."""
        return self._tail.decode(errors="replace").strip()

    def read_output(self) -> bool:
        """Take what it printed; returns whether it is still there."""
        try:
            data = os.read(self.output_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        self._tail = (self._tail + data)[-_KEPT_BYTES:]
        return bool(data)

    def stop(self, word: StopWord, reason: str) -> None:
        """Have it stop its run now, and record why."""
        with contextlib.suppress(OSError):  # it is gone already
            self._stdin.write(json.dumps({"stop": word, "reason": reason}).encode() + b"\n")
            self._stdin.flush()

    def interrupt(self) -> None:
        """Have it interrupt its run and record that."""
        self._process.send_signal(signal.SIGTERM)

    def hurry(self) -> None:
        """Have it kill what it was told to interrupt. Another kind of signal, because two equal ones may merge."""
        self._process.send_signal(signal.SIGINT)
        self._process.send_signal(signal.SIGTERM)  # where SIGINT is ignored, as in a shell's background job

    def wait(self) -> int:
        """Its exit code, negative for a signal. Called when its output has ended."""
        try:
            return self._process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:  # it closed its output, or somebody else did, and nobody watches it now
            self._process.kill()
            return self._process.wait()
        finally:
            self._close()

    def let_go(self) -> None:
        """Act as if we had died, and wait until it has stopped its run."""
        self._close()
        self._process.wait()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
