"""Cut a trainer's output into lines with levels, and pass them on to train.log and the console."""

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from primus_hydra.redaction import redact

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
LEVELS = {"TRACE": 5, "DEBUG": DEBUG, "INFO": INFO, "SUCCESS": 25, "WARNING": WARNING, "ERROR": ERROR, "CRITICAL": 50}
"""Names that the sink levels may have; they are loguru's, as in Primus."""

_ABSL = re.compile(r"([DIWEF])\d{4} \d\d:\d\d:\d\d\.\d+")
_XLA = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([DIWEF]) ")
_STANDARD = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]*:")
_ALARM = re.compile(
    r"Traceback \(most recent call last\):|Fatal Python error:|MAXTEXT CONFIG ERROR:|PRIMUS_HYDRA [A-Z]+"
)
_LETTERS = {"D": DEBUG, "I": INFO, "W": WARNING, "E": ERROR, "F": 50}
_STEP = re.compile(r"completed (?:profiler activation/deactivation )?step: \d")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MAX_LINE_BYTES = 1 << 20
_TAIL_LINES = 400
_TAIL_CHARACTERS = 30_000
_CONSOLE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trainer's output."""

    level: int
    text: str
    """Without the newline."""

    @property
    def is_step(self) -> bool:
        """Whether MaxText reports a finished step here; the progress display tells the same."""
        return _STEP.search(self.text) is not None


def level_of(text: str, previous: int) -> int:
    """Level of a line. A line without a prefix belongs to the one before and has its level."""
    if _ALARM.search(text):
        return ERROR
    if found := _ABSL.match(text) or _XLA.match(text):
        return _LETTERS[found[1]]
    if found := _STANDARD.match(text):
        return LEVELS[found[1]]
    return previous


class LogPump:
    """Bytes in; redacted lines out to train.log, the console, and whoever reads lines. Never raises on bad output."""

    def __init__(
        self,
        path: Path,
        *,
        file_level: int,
        console_level: int,
        secrets: Sequence[str],
        say: Callable[[str], None],
        read: Callable[[Line], None],
    ) -> None:
        """Open train.log.

        Args:
            path: train.log.
            file_level: lines below are left out of train.log.
            console_level: lines below are left out of the console.
            secrets: values to mask, longest first.
            say: shows one line on the console.
            read: is given every line, whatever its level.
        """
        self._stream = path.open("ab", buffering=0)
        self._path = path
        self._file_level, self._console_level = file_level, console_level
        self._secrets = secrets
        self._say, self._read = say, read
        self._rest = bytearray()
        self._cut = False  # whether what comes next continues a line that was passed on already
        self._level = INFO
        self._keep = max(map(len, secrets), default=0) + 256
        self.tail: deque[Line] = deque(maxlen=_TAIL_LINES)
        """The last lines, whatever their level, each cut to a bounded length."""
        self.problem = ""
        """Why train.log is incomplete; empty if it is not."""

    def feed(self, data: bytes) -> None:
        """Take the next piece of output."""
        self._rest += data
        kept: list[bytes] = []
        if b"\n" in data:
            *lines, rest = self._rest.split(b"\n")
            kept = [self._emit(line + b"\n") for line in lines]
            self._rest = rest
        if len(self._rest) > _MAX_LINE_BYTES:
            # A line without end: pass on what cannot be the beginning of a secret any more.
            masked = self._redact(self._rest)
            kept.append(self._emit(masked[: -self._keep].encode()))
            self._rest = bytearray(masked[-self._keep :].encode())
            self._cut = True
        self._write(b"".join(kept))

    def close(self) -> None:
        """Take what was printed last as a line, although its newline never came; close train.log."""
        try:
            if self._rest:
                self._write(self._emit(self._rest))
        finally:
            self._stream.close()

    def _redact(self, line: bytes | bytearray) -> str:
        return redact(line.decode("utf-8", "backslashreplace"), self._secrets)

    def _emit(self, raw: bytes | bytearray) -> bytes:
        """Show and remember one line; returns what belongs into train.log."""
        masked = self._redact(raw)
        text = masked.rstrip("\r\n")
        self._level = level_of(text, self._level)
        # MaxText dumps its whole configuration, 864 lines, at the level of its other messages.
        line = Line(DEBUG if "] Config param " in text else self._level, text)
        self._read(line)
        self.tail.append(Line(line.level, text[:_TAIL_CHARACTERS]))
        if line.level >= self._console_level and not line.is_step and not self._cut:
            self._say(_for_console(text))
        self._cut = False
        return masked.encode() if line.level >= self._file_level else b""

    def _write(self, data: bytes) -> None:
        """Write to train.log. A full disk must not stop the trainer, nor our reading of its output."""
        if not data or self.problem:
            return
        try:
            while data:
                data = data[self._stream.write(data) :]
        except OSError as error:
            self.problem = f"{self._path.name} is incomplete: {error.strerror}."
            self._say(f"{self.problem} The run goes on.")


def _for_console(text: str) -> str:
    """What a terminal would show of the line: the part after the last carriage return, no control characters."""
    text = _CONTROL.sub("", text.rpartition("\r")[2])
    if len(text) <= _CONSOLE_CHARACTERS:
        return text
    return f"{text[:_CONSOLE_CHARACTERS]} ... ({len(text) - _CONSOLE_CHARACTERS:,} more characters in train.log)"
