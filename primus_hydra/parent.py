"""The program that started this worker, at the other end of a pipe: it may order a stop, and it may be gone."""

import contextlib
import json
import os
import stat
from dataclasses import dataclass

_CHUNK_BYTES = 1 << 12


@dataclass(frozen=True, kw_only=True, slots=True)
class StopOrder:
    """Why the parent wants this run to end early."""

    word: str
    """Kind, recorded as the run's `failure`: `slow`, `rung`."""
    reason: str
    """One sentence for people."""


class ParentLink:
    """The reading end of the pipe. Nothing is ever written to the parent, so one that hangs holds nobody up."""

    def __init__(self, descriptor: int) -> None:
        """Listen.

        Raises:
            ValueError: the descriptor is no pipe and no socket, so the parent's end could not be seen.
        """
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise ValueError("it is neither a pipe nor a socket")
        self.descriptor = descriptor
        self.order: StopOrder | None = None
        """The first order that came."""
        self.gone = False
        """Whether the other end is closed: the parent died, or let go of this run."""
        self._inbox = b""

    def read(self) -> None:
        """Take what has come; to be called when the descriptor is readable, and then it does not wait."""
        try:
            data = os.read(self.descriptor, _CHUNK_BYTES)
        except OSError:
            data = b""
        self.gone = not data
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            self.order = self.order or _parse_order(line)


def _parse_order(line: bytes) -> StopOrder | None:
    """`{"stop": word, "reason": sentence}`; None for a line that is no order."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        message = json.loads(line)
        if isinstance(message["stop"], str) and isinstance(message["reason"], str):
            return StopOrder(word=message["stop"], reason=message["reason"])
    return None
