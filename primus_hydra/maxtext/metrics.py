"""Read MaxText's step metrics: the metrics file while it grows, and the step lines of the log."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

_HEAD_BYTES = 1 << 12
_CHUNK_BYTES = 1 << 20
_STEP_LINE = re.compile(
    r"completed step: (?P<step>\d+), seconds: (?P<seconds>[\d.]+)"
    r"(?:, TFLOP/s/device: (?P<tflops>[\d.]+), Tokens/s/device: (?P<tokens>[\d.]+))?"
    r"(?:.*?total_weights: (?P<weights>[\d.]+))?.*?[ ,]loss: (?P<loss>[-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf))"
)
_BACKEND = re.compile(r"System Information: Jax Backend: (\w+)")
_DEVICES = re.compile(r"Num_devices: (\d+), shape")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One finished training step of one process."""

    step: int
    step_time_s: float | None
    """Seconds between the ends of two dispatches on the host, as MaxText measures them."""
    loss: float
    """May be NaN or infinite."""
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
            step_time_s=_number(data, "perf/step_time_seconds"),
            loss=float(data["learning/loss"]),
            tokens_per_device=_number(data, "perf/per_device_tokens"),
            tflops_per_device=_number(data, "perf/per_device_tflops"),
            total_weights=_number(data, "learning/total_weights"),
        )
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def parse_log_line(text: str) -> StepRecord | None:
    """The same from a `completed step:` line, with three decimals; None for any other line."""
    found = _STEP_LINE.search(text)
    if found is None:
        return None
    try:
        seconds = float(found["seconds"])
        return StepRecord(
            step=int(found["step"]),
            step_time_s=seconds,
            loss=float(found["loss"]),
            tokens_per_device=float(found["tokens"]) * seconds if found["tokens"] else None,
            tflops_per_device=float(found["tflops"]) * seconds if found["tflops"] else None,
            total_weights=float(found["weights"]) if found["weights"] else None,
        )
    except ValueError:
        return None


def parse_platform_line(text: str) -> dict[str, Any]:
    """What a log line tells about the machine, named as in child.json: for trainers that write no child.json."""
    if found := _BACKEND.search(text):
        return {"jax_platform": found[1]}
    if found := _DEVICES.search(text):
        return {"num_devices": int(found[1])}
    return {}


def _number(data: dict[str, Any], key: str) -> float | None:
    return float(data[key]) if key in data else None


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
