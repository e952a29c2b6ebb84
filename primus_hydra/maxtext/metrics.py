"""Read MaxText's step metrics: the metrics file while it grows, and the step lines of the log."""

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

_HEAD_BYTES = 1 << 12
_CHUNK_BYTES = 1 << 20
_FIGURE = r"[-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)"
_STEP_LINE = re.compile(
    rf"completed step: (?P<step>\d+), seconds: (?P<seconds>{_FIGURE})"
    rf"(?:, TFLOP/s/device: (?P<tflops>{_FIGURE}), Tokens/s/device: (?P<tokens>{_FIGURE}))?"
    rf"(?:.*?total_weights: (?P<weights>{_FIGURE}))?.*?[ ,]loss: (?P<loss>{_FIGURE})"
)
_BACKEND = re.compile(r"System Information: Jax Backend: (\w+)")
_DEVICES = re.compile(r"Num_devices: (\d+), shape")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One finished training step of one process. A figure that is no finite number of at least 0 counts as unknown."""

    step: int
    step_time_s: float | None
    """Seconds between the ends of two dispatches on the host, as MaxText measures them."""
    loss: float
    """May be NaN or infinite; NaN as well where the trainer wrote no number."""
    tokens_per_device: float | None
    """Batch positions of one device in this step, padding included."""
    tflops_per_device: float | None
    """Model TFLOPs (analytic, without recomputation) of one device in this step."""
    total_weights: float | None
    """Tokens that count in the loss, over all devices."""


def parse_metrics_line(line: bytes | str) -> StepRecord | None:
    """One line of the metrics file; None where it is no training step (evaluation, damage)."""
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or "learning/loss" not in data:
            return None
        return StepRecord(
            step=int(data["step"]),
            step_time_s=_figure(data.get("perf/step_time_seconds")),
            loss=_loss(data["learning/loss"]),
            tokens_per_device=_figure(data.get("perf/per_device_tokens")),
            tflops_per_device=_figure(data.get("perf/per_device_tflops")),
            total_weights=_figure(data.get("learning/total_weights")),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def parse_log_line(text: str) -> StepRecord | None:
    """The same from a `completed step:` line, with three decimals; None for any other line."""
    found = _STEP_LINE.search(text) if "completed step: " in text else None
    if found is None:
        return None
    seconds, tokens, tflops, weights = (
        _figure(_spelt(found[name])) for name in ("seconds", "tokens", "tflops", "weights")
    )
    try:
        step = int(found["step"])
    except ValueError:  # thousands of digits
        return None
    return StepRecord(
        step=step,
        step_time_s=seconds,
        loss=_loss(_spelt(found["loss"])),
        tokens_per_device=tokens * seconds if tokens is not None and seconds is not None else None,
        tflops_per_device=tflops * seconds if tflops is not None and seconds is not None else None,
        total_weights=weights,
    )


def parse_platform_line(text: str) -> dict[str, Any]:
    """What a log line tells about the machine, named as in child.json: for trainers that write no child.json."""
    if "System Information: " in text and (found := _BACKEND.search(text)):
        return {"jax_platform": found[1]}
    if "Num_devices: " in text and (found := _DEVICES.search(text)):
        return {"num_devices": int(found[1])}
    return {}


def _spelt(text: str | None) -> float | None:
    """The number that a log line spells; None where it spells none (`1.2.3`)."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _figure(value: object) -> float | None:
    """A time or an amount; None where it is none: text, null, NaN, infinite, negative."""
    number = _loss(value)
    return number if math.isfinite(number) and number >= 0 else None


def _loss(value: object) -> float:
    """A loss; NaN where it is no number, since a step whose loss is unknown proves nothing about the run."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


class MetricsTail:
    """Follows a metrics file. Reads every byte once, and keeps what MaxText truncates away at each evaluation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._head = b""
        self._partial = b""

    def poll(self) -> list[StepRecord]:
        """Steps that were added since the last call."""
        try:
            with self._path.open("rb", buffering=0) as stream:
                return self._read(stream)
        except OSError:
            return []

    def _read(self, stream: FileIO) -> list[StepRecord]:
        # A file can shrink and grow past the old end between two looks: then its beginning has changed.
        if os.fstat(stream.fileno()).st_size < self._offset or stream.read(len(self._head)) != self._head:
            self._offset, self._head, self._partial = 0, b"", b""
        records: list[StepRecord] = []
        stream.seek(self._offset)
        while data := stream.read(_CHUNK_BYTES):
            if len(self._head) < _HEAD_BYTES:
                self._head += data[: _HEAD_BYTES - len(self._head)]
            self._offset += len(data)
            *lines, self._partial = (self._partial + data).split(b"\n")
            records += [record for line in lines if (record := parse_metrics_line(line))]
        return records


class StepHistory:
    """The finished steps of one attempt, by step. The metrics file is exact and wins over the log's three decimals."""

    def __init__(self) -> None:
        self._records: dict[int, StepRecord] = {}
        self._exact: set[int] = set()
        self.latest: StepRecord | None = None
        """The record of the highest step."""
        self.num_seen = 0
        """Records taken so far, repeated steps included: grows as long as the run gets on."""

    def add_metrics(self, records: Iterable[StepRecord]) -> None:
        """Take records of the metrics file; a step that was trained again replaces its first record."""
        for record in records:
            self._exact.add(record.step)
            self._add(record)

    def add_log(self, record: StepRecord) -> None:
        """Take the record of a log line: the only trace of a step whose metrics were truncated away unread."""
        if record.step not in self._exact:
            self._add(record)

    def records(self) -> tuple[StepRecord, ...]:
        """All records, in order of their steps."""
        return tuple(self._records[step] for step in sorted(self._records))

    def _add(self, record: StepRecord) -> None:
        self._records[record.step] = record
        self.num_seen += 1
        if self.latest is None or record.step >= self.latest.step:
            self.latest = record
