"""The training steps that metrics files and logs hold."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from primus_hydra.maxtext.metrics import MetricsTail, StepHistory, StepRecord, parse_log_line

LOG_ENDINGS = (".log", ".out")
_STEP = b"completed step: "
_MAX_LINE_BYTES = 1 << 16


def read_records(files: Iterable[Path], expected: int | None = None) -> tuple[StepRecord, ...]:
    """All steps of one attempt, in order; half lines, damage and missing files give none.

    Args:
        files: metrics files, which are exact, and logs, which still have what MaxText truncated away in those.
        expected: number of steps that the attempt has; logs are not read where the metrics files hold them all.
    """
    history = StepHistory()
    for file in files:
        if file.suffix not in LOG_ENDINGS:
            history.add_metrics(MetricsTail(file).poll())
        elif expected is None or len(history.records()) < expected:
            for record in _read_log(file):
                history.add_log(record)
    return history.records()


def read_lines(file: Path) -> Iterator[bytes]:
    """Lines of a log without their ends, each cut to a bounded length; nothing for a file that cannot be read."""
    try:
        with file.open("rb") as stream:
            while line := stream.readline(_MAX_LINE_BYTES):
                yield line.rstrip(b"\r\n")
    except OSError:
        return


def _read_log(file: Path) -> Iterator[StepRecord]:
    for line in read_lines(file):
        if _STEP in line and (record := parse_log_line(line.decode("utf-8", "backslashreplace"))):
            yield record
