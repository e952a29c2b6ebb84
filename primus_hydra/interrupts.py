"""Turn SIGINT, SIGTERM and SIGHUP into something that a selector can wait for."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from types import FrameType


class CaughtSignals:
    """Signals that arrived, and a socket that becomes readable when one does."""

    def __init__(self) -> None:
        self.arrived: list[int] = []
        self.wakeup, self._writing = socket.socketpair()
        self.wakeup.setblocking(False)
        self._writing.setblocking(False)

    def catch(self, number: int, _frame: FrameType | None) -> None:
        self.arrived.append(number)
        with contextlib.suppress(OSError):
            self._writing.send(b"!")

    def close(self) -> None:
        self.wakeup.close()
        self._writing.close()


@contextlib.contextmanager
def caught_signals() -> Iterator[CaughtSignals]:
    """Collect SIGINT, SIGTERM and SIGHUP. Only a process's main thread can; elsewhere nothing is caught."""
    signals = CaughtSignals()
    previous: dict[signal.Signals, object] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What the starter chose to ignore (nohup, a shell's background job) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):
                    previous[number] = signal.signal(number, signals.catch)
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signals.close()
