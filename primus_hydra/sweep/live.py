"""What a person sees of a whole sweep while it runs: live lines on a terminal, plain lines elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import ConsoleOptions, Group, OverflowMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.objective import describe_figure, read_figure
from primus_hydra.progress import Voice, format_duration, format_figures
from primus_hydra.report.plain_text import make_plain
from primus_hydra.sweep.ending import Ending
from primus_hydra.sweep.tally import Tally, estimate_rest_s

_QUIET_S = 60.0
"""Plain lines about one running job are at least so far apart."""
_OTHER_LINES = 3
"""Lines of a terminal that are kept for the summary, for what was cut, and for the cursor."""
_COLUMNS = 5
_FIGURES_WIDTH = 72
"""Room for `_COLUMNS` texts."""
_NAME_WIDTH = 20
"""Names are cut to make room, but not further."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Glance:
    """One running job, as it is now."""

    differs: str
    """What people call it."""
    latest: StepRecord | None
    """Its newest step; None while it starts."""
    total_steps: int | None
    elapsed_s: float
    """Seconds since its start."""
    rest_s: float | None
    """Seconds that it still needs; None while that is unknown."""


class SweepView:
    """Tells how the jobs of a sweep get on. Whatever goes wrong with showing it, the sweep goes on."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._live = (
            # No refresh thread: the pool's loop refreshes, so nothing prints behind its back.
            Live(console=voice.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            if voice.console.is_terminal and not voice.console.is_dumb_terminal
            else None
        )
        self._spoken_at_s: dict[str, float] = {}

    def __enter__(self) -> Self:
        if self._live:
            with self._voice.attempt():
                self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            with self._voice.attempt():
                self._live.update(Text())  # every job has its line by now
                self._live.stop()

    def say(self, text: str) -> None:
        """Tell something about the sweep, above what is live."""
        self._voice.say(text)

    def tell_start(self, differs: str, *, slot: str = "", attempt: int = 1) -> None:
        """A worker was started on a job; `slot` names its devices, where it has some of its own."""
        self._spoken_at_s[differs] = 0.0
        if not self._live:
            again = f" (attempt {attempt})" if attempt > 1 else ""
            self.say(f"started {make_plain(differs)}{again}{f' on {slot}' if slot else ''}")

    def tell_retry(self, differs: str, ending: Ending) -> None:
        """A job failed in a way that may not happen again, and another attempt follows."""
        self.say(f"trying again: {describe_failure(differs, ending)}")

    def tell_end(self, differs: str, ending: Ending, tally: Tally, *, is_best: bool) -> None:
        """A job ended for good."""
        self._spoken_at_s.pop(differs, None)
        self.say(f"[{tally.position}] {describe_ending(differs, ending, tally, is_best=is_best)}")

    def update(self, glances: Sequence[Glance], tally: Tally, *, num_waiting: int, num_slots: int) -> None:
        """Show how the running jobs are; called about once a second."""
        with self._voice.attempt():
            if self._live:
                lines = draw(glances, tally, num_waiting, num_slots, self._voice.console.options)
                self._live.update(lines, refresh=True)
            else:
                self._say_news(glances)

    def _say_news(self, glances: Sequence[Glance]) -> None:
        for glance in glances:
            if glance.elapsed_s - self._spoken_at_s.get(glance.differs, 0.0) >= _QUIET_S:
                self._spoken_at_s[glance.differs] = glance.elapsed_s
                self.say(f"{make_plain(glance.differs)}: {'  '.join(filter(None, describe_glance(glance)))}")


def describe_glance(glance: Glance) -> list[str]:
    """Step, loss, speed, time since the start, time left: `_COLUMNS` texts, empty where unknown."""
    left = "" if glance.rest_s is None else f"ETA {format_duration(glance.rest_s)}"
    if glance.latest is None:
        return ["starting", "", "", format_duration(glance.elapsed_s), left]
    loss, speed, *_ = [*format_figures(glance.latest), ""]
    step = f"step {glance.latest.step + 1}/{glance.total_steps or '?'}"
    return [step, loss, speed, format_duration(glance.elapsed_s), left]


def describe_ending(differs: str, ending: Ending, tally: Tally, *, is_best: bool) -> str:
    """State, what people call the point, its duration and figure; for one that did not complete, why."""
    if ending.state != "completed":
        return describe_failure(differs, ending)
    score = read_figure(ending.record.get("result") or {}, tally.objective)
    figure = "no figure, too few steps" if score is None else describe_figure(score, tally.objective)
    return f"completed {make_plain(differs)}{_duration(ending)}: {figure}{', the best so far' if is_best else ''}"


def describe_failure(differs: str, ending: Ending) -> str:
    """State, kind of failure, what people call the point, how long it ran, why it ended; where its log lies."""
    kind = f" ({ending.failure})" if ending.failure else ""
    log = f" (log: {ending.record['log']})" if ending.is_failure and ending.record.get("log") else ""
    reason = make_plain(f"{ending.reason}{log}")
    return f"{ending.state}{kind} {make_plain(differs)}{_duration(ending)}: {reason}"


def _duration(ending: Ending) -> str:
    wall_s = ending.record.get("wall_s")
    return f" after {format_duration(wall_s)}" if isinstance(wall_s, int | float) else ""


def describe_sweep(glances: Sequence[Glance], tally: Tally, num_waiting: int, num_slots: int) -> str:
    """How many are in which state, the best so far, and when the sweep may be over."""
    counts = [f"{number} {state}" for state, number in sorted(tally.states.items())]
    counts += [f"{len(glances)} running", *([f"{num_waiting} waiting"] if num_waiting else [])]
    parts = [f"{tally.position} done: {', '.join(counts)}"]
    running = [(glance.elapsed_s, glance.rest_s) for glance in glances]
    rest_s = estimate_rest_s(tally.walls_s, running, num_waiting=num_waiting, num_slots=num_slots)
    parts += [] if rest_s is None else [f"ETA {format_duration(rest_s)}"]
    if tally.best:
        score, differs = tally.best
        parts.append(f"best {describe_figure(score, tally.objective)}: {make_plain(differs)}")
    return "  ".join(parts)


def draw(
    glances: Sequence[Glance], tally: Tally, num_waiting: int, num_slots: int, terminal: ConsoleOptions
) -> RenderableType:
    """One line per running job and a summary, cut to the terminal's size and spelt in its letters."""

    def spell(text: str) -> Text:
        return Text(text.encode(terminal.encoding, "backslashreplace").decode(terminal.encoding), overflow=overflow)

    overflow: OverflowMethod = "crop" if terminal.ascii_only else "ellipsis"
    shown = glances[: max(1, terminal.size.height - _OTHER_LINES)]
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, max_width=max(_NAME_WIDTH, terminal.size.width - _FIGURES_WIDTH), overflow=overflow)
    for _ in range(_COLUMNS):
        table.add_column(no_wrap=True, justify="right")
    for glance in shown:
        table.add_row(spell(make_plain(glance.differs)), *map(spell, describe_glance(glance)))
    cut = len(glances) - len(shown)
    more = [Text(f"... and {cut} more")] if cut else []
    summary = spell(describe_sweep(glances, tally, num_waiting, num_slots))
    summary.no_wrap = True
    return Group(table, *more, summary)
