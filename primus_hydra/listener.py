"""Take in everything that one run tells: its output and its metrics."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from primus_hydra.launch import DEFAULT_LOG_PERIOD, expected_steps, sink_levels
from primus_hydra.log_lines import Line, LogPump
from primus_hydra.maxtext.metrics import MetricsTail, StepHistory, parse_log_line, parse_platform_line
from primus_hydra.progress import RunProgress, Voice
from primus_hydra.runs import Record, RunFolder


class RunListener:
    """The supervisor's observer: writes train.log, shows progress, collects the steps."""

    def __init__(
        self, folder: RunFolder, record: Record, command: Mapping[str, Any], voice: Voice, secrets: Sequence[str]
    ) -> None:
        """Open train.log and show the first phase.

        Raises:
            OSError: train.log cannot be opened.
        """
        levels = sink_levels(record["private"])
        composed = record["composed"]
        self.history = StepHistory()
        self.seen: dict[str, Any] = {}
        """What the log tells about the machine, for trainers that write no child.json."""
        self.progress = RunProgress(
            voice,
            total_steps=expected_steps(composed),
            log_period=composed.get("log_period", {"value": DEFAULT_LOG_PERIOD})["value"],
            first_phase="importing MaxText" if command["trainer"] is None else "starting the trainer",
        )
        self.pump = LogPump(
            folder.train_log,
            file_level=levels[0],
            console_level=levels[1],
            secrets=list(secrets),
            say=voice.say,
            read=self._read,
        )
        self._metrics = MetricsTail(folder.metrics_jsonl)

    def poll(self) -> None:
        """Take new lines of the metrics file."""
        self.history.add_metrics(self._metrics.poll())

    def output(self, data: bytes) -> None:
        """Take what the trainer printed."""
        self.pump.feed(data)

    def update(self) -> int:
        """Show the newest step; returns the number of steps finished so far."""
        self.progress.update(self.history)
        return self.history.num_seen

    def close(self) -> None:
        """Show and write what is still held back."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.pump.close)
            self.progress.close()

    def _read(self, line: Line) -> None:
        self.seen |= parse_platform_line(line.text)
        self.progress.read(line.text)
        if line.is_step and (record := parse_log_line(line.text)):
            self.history.add_log(record)
