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

_PREFIX = re.compile(
    r"([DIWEF])\d{4} \d\d:\d\d:\d\d\.\d+"  # absl
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([DIWEF]) "  # XLA
    r"|(DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]*:"  # Python's logging
)
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
        return "completed " in self.text and _STEP.search(self.text) is not None


def level_of(text: str, previous: int) -> int:
    """Level of a line. A line without a prefix belongs to the one before and has its level."""
    if _ALARM.search(text):
        return ERROR
    return _level_of_prefix(text, previous)


def _level_of_prefix(text: str, previous: int) -> int:
    found = _PREFIX.match(text)
    if found is None:
        return previous
    return LEVELS[found[3]] if found[3] else _LETTERS[found[1] or found[2]]


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
            say: shows lines on the console, all of one piece of output at once.
            read: is given every line as it was printed, whatever its level, secrets included: to be read, not kept.
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
        if b"\n" in data:
            end = self._rest.rindex(b"\n") + 1
            block = _decode(self._rest[:end])
            del self._rest[:end]
            self._pass_on(block)
        if len(self._rest) > _MAX_LINE_BYTES:
            # A line without end: pass on what cannot be the beginning of a secret any more.
            masked = redact(_decode(self._rest), self._secrets)
            self._pass_on(masked[: -self._keep])
            self._rest = bytearray(masked[-self._keep :].encode())
            self._cut = True

    def close(self) -> None:
        """Take what was printed last as a line, although its newline never came; close train.log."""
        try:
            if self._rest:
                self._pass_on(_decode(self._rest))
        finally:
            self._stream.close()

    def _pass_on(self, block: str) -> None:
        """Show, remember and log lines: complete ones, or a single one without its newline.

        Searching a whole block for what is rare is many times faster than searching each line.
        """
        ending = "\n" if block.endswith("\n") else ""
        masked, alarming = redact(block, self._secrets) != block, _ALARM.search(block) is not None
        kept: list[str] = []
        shown: list[str] = []
        for raw in block.removesuffix("\n").split("\n"):
            text = redact(raw, self._secrets) if masked else raw
            line, is_step = self._take(raw.rstrip("\r"), text.rstrip("\r"), alarming=alarming)
            if line.level >= self._file_level:
                kept.append(text + ending)
            if line.level >= self._console_level and not is_step and not self._cut:
                shown.append(_for_console(line.text))
            self._cut = False
        if shown:
            self._say("\n".join(shown))
        self._write("".join(kept).encode())

    def _take(self, raw: str, text: str, *, alarming: bool) -> tuple[Line, bool]:
        """Read one line and remember it with its secrets masked; also tells whether it reports a step."""
        self._level = (level_of if alarming else _level_of_prefix)(raw, self._level)
        # MaxText dumps its whole configuration, 864 lines, at the level of its other messages.
        line = Line(DEBUG if "] Config param " in raw else self._level, raw)
        # A secret may be spelt like one of MaxText's own words: what a line means is read before it is masked.
        self._read(line)
        is_step = line.is_step
        if text is not raw:
            line = Line(line.level, text)
        self.tail.append(line if len(text) <= _TAIL_CHARACTERS else Line(line.level, text[:_TAIL_CHARACTERS]))
        return line, is_step

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


def _decode(data: bytearray) -> str:
    return data.decode("utf-8", "backslashreplace")


def _for_console(text: str) -> str:
    """What a terminal would show of the line: the part after the last carriage return, no control characters."""
    if not text.isprintable():
        text = _CONTROL.sub("", text.rpartition("\r")[2])
    if len(text) <= _CONSOLE_CHARACTERS:
        return text
    return f"{text[:_CONSOLE_CHARACTERS]} ... ({len(text) - _CONSOLE_CHARACTERS:,} more characters in train.log)"
