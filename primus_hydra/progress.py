"""Show how a run goes: a live line on a terminal, plain lines elsewhere."""

import contextlib
import math
import time
from collections import deque
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from primus_hydra.maxtext.metrics import StepHistory, StepRecord

PHASES = (
    ("System Information: Jax", "building the model"),
    ("existing checkpoint", "compiling the train step"),
    ("restoring from", "compiling the train step"),
    ("Total estimated memory size", "waiting for the first step"),
)
"""What MaxText prints -> what it does from then on. Checked against the log of MaxText 0.2.5."""

_WIDE = 100
_WINDOW = 20
_QUIET_S = 60.0


class Voice:
    """A console that may go away (a closed pipe, a full disk behind a redirect) without ending the run."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """Print lines as they are: no markup, no highlighting, no wrapping."""
        with self.attempt():
            encoding = self.console.encoding
            text = text.encode(encoding, "backslashreplace").decode(encoding)
            if self.console.is_terminal:
                self.console.print(Text(text), soft_wrap=True)
            elif not self.console.quiet:
                # Laying out what needs no layout is hundreds of times slower, and the trainer waits for us.
                self.console.file.write(f"{text}\n")
                self.console.file.flush()

    def show(self, drawing: RenderableType) -> None:
        """Print a table or whatever else rich draws."""
        with self.attempt():
            self.console.print(drawing)

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Whatever goes wrong with showing something here, the run goes on."""
        try:
            yield
        except (OSError, SystemExit):  # rich turns a broken pipe into SystemExit
            self.console.quiet = True  # or it keeps what it could not write, and tries again each time
        except Exception:
            return


class RunProgress:
    """What a person sees between the start and the end of one run."""

    def __init__(self, voice: Voice, *, total_steps: int | None, log_period: int, first_phase: str) -> None:
        """Show the first phase.

        Args:
            voice: where to show it.
            total_steps: steps that the run will have finished at its end; None if unknown.
            log_period: MaxText's key; plain lines come about that often, and at least every tenth of the run.
            first_phase: what the trainer does before it prints anything.
        """
        self._voice, self._total, self._phase = voice, total_steps, first_phase
        self._every = max(1, min(log_period, total_steps // 10 if total_steps else log_period))
        self._started_at = self._spoken_at = time.monotonic()
        self._window: deque[StepRecord] = deque(maxlen=_WINDOW)
        self._spoken: StepRecord | None = None
        self._live = _live_line(voice.console) if voice.console.is_terminal else None
        self._task = self._live.add_task(first_phase, total=None, figures="") if self._live else None
        if self._live:
            with voice.attempt():
                self._live.start()
        else:
            voice.say(f"{first_phase} ...")

    def close(self) -> None:
        """Say the last step, where it was not said yet; leave the terminal as it was."""
        with self._voice.attempt():
            if self._live:
                self._live.stop()
            elif self._window and (self._spoken is None or self._spoken.step != self._window[-1].step):
                self._say_step(self._window[-1])

    def read(self, text: str) -> None:
        """Learn from a line of the trainer what it does now."""
        if self._window:
            return
        for mark, phase in PHASES:
            if mark in text and phase != self._phase:
                self._phase = phase
                if not self._live:
                    self._voice.say(f"{phase} ... ({self._elapsed()} after the start)")

    def update(self, history: StepHistory) -> None:
        """Show the newest step; called a few times a second."""
        with self._voice.attempt():
            self._show(history)

    def _show(self, history: StepHistory) -> None:
        latest = history.latest
        if latest is not None and self._window and self._window[-1].step == latest.step:
            self._window[-1] = latest  # the metrics file has more digits than the log line that came first
        elif latest is not None:
            if not self._window and latest.step > 0 and (first := history.records()[0].step) > 0:
                self._voice.say(f"resumed at step {first}")
            self._window.append(latest)
            if not self._live and self._is_due(latest):
                self._say_step(latest)
        if self._live:
            self._show_live(latest)

    def _is_due(self, latest: StepRecord) -> bool:
        if self._spoken is None or (self._total is not None and latest.step == self._total - 1):
            return True
        crossed = (latest.step + 1) // self._every > (self._spoken.step + 1) // self._every
        return crossed or time.monotonic() - self._spoken_at > _QUIET_S

    def _say_step(self, record: StepRecord) -> None:
        self._spoken, self._spoken_at = record, time.monotonic()
        count = f"step {record.step + 1}/{self._total or '?'}"
        parts = [count, *format_figures(record), self._elapsed(), self._eta(record)]
        self._voice.say("  ".join(part for part in parts if part))

    def _show_live(self, latest: StepRecord | None) -> None:
        assert self._live is not None
        assert self._task is not None
        if latest is None:
            self._live.update(self._task, description=self._phase, figures=self._elapsed())
        else:
            figures = "  ".join([*format_figures(latest), self._elapsed(), self._eta(latest)])
            self._live.update(
                self._task,
                description=f"step {latest.step + 1}/{self._total or '?'}",
                completed=latest.step + 1,
                total=self._total,
                figures=figures,
            )
        self._live.refresh()

    def _elapsed(self) -> str:
        return format_duration(time.monotonic() - self._started_at)

    def _eta(self, latest: StepRecord) -> str:
        """Time left, from the median of the last steps."""
        times = sorted(record.step_time_s for record in self._window if record.step_time_s)
        if self._total is None or len(times) < 2:  # the first step compiles
            return ""
        return f"ETA {format_duration(max(0, self._total - latest.step - 1) * times[len(times) // 2])}"


def _live_line(console: Console) -> Progress:
    # No refresh thread: the worker's loop refreshes, so nothing prints behind its back.
    bar = [BarColumn(bar_width=12)] if console.width >= _WIDE else []
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *bar,
        TextColumn("{task.fields[figures]}", markup=False),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def format_figures(record: StepRecord) -> list[str]:
    """Loss, tokens/s/device and TFLOP/s/device of one step, as far as known."""
    figures = [f"loss {record.loss:.3f}"]
    if record.step_time_s and record.tokens_per_device is not None:
        figures.append(f"{record.tokens_per_device / record.step_time_s:,.0f} tok/s/dev")
    if record.step_time_s and record.tflops_per_device is not None:
        figures.append(f"{record.tflops_per_device / record.step_time_s:.3g} TFLOP/s/dev")
    return figures


def format_duration(seconds: float) -> str:
    """Seconds as `42s`, `3m05s` or `2h03m`; `?` where they are no finite number."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
