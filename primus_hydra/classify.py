"""What became of a run: state, kind of failure, and one sentence. Pure: no files, no clock.

MaxText's exit code proves nothing: exhausted data, SIGTERM and an empty batch all exit 0.
A run is completed when its last step was reached with a finite loss.
"""

import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from primus_hydra.error_lines import find_error_lines, find_exception, shorten
from primus_hydra.log_lines import ERROR, Line
from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.supervisor import Exit

State = Literal["completed", "failed", "timed_out", "interrupted", "skipped"]
Failure = Literal["config", "crash", "out_of_memory", "not_finite_loss", "no_steps", "incomplete", "hung", "timeout"]

_OUT_OF_MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED|[Oo]ut of memory|OUT_OF_MEMORY|hipErrorOutOfMemory|\bMemoryError\b|bad_alloc|"
    r"[Cc]annot allocate memory"
)
_CHILD_EXITS = {3: "PRIMUS_HYDRA DIFFERENCE", 4: "PRIMUS_HYDRA PLATFORM"}
_MAXTEXT_REFUSES = "MAXTEXT CONFIG ERROR:"
_SHELL_SIGNAL_BASE = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Everything that is known about how a run ended."""

    exit: Exit
    expected_steps: int | None
    """MaxText's `steps`; None if unknown."""
    records: Sequence[StepRecord]
    tail: Sequence[Line]
    """The last lines of the log."""
    oom_killed: bool
    """Whether the kernel's out-of-memory killer was at work during the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is recorded about it."""

    state: State
    failure: Failure | str | None
    """Of a skipped run, the word of the program that stopped it."""
    reason: str
    """One sentence; for a completed run, what it did."""
    last_error_lines: tuple[str, ...]
    """Empty for a completed or skipped run."""


def classify(outcome: Outcome) -> Verdict:
    """Tell completed, failed, timed out, hung, interrupted and skipped apart."""
    if done := _describe_completion(outcome):
        return Verdict(state="completed", failure=None, reason=done, last_error_lines=())
    state: State = "failed"
    failure: Failure | str | None
    if outcome.exit.stop is not None:
        state, failure, reason = _classify_stop(outcome)
        reason += f" The trainer did not end cleanly: {outcome.exit.problem}." if outcome.exit.problem else ""
    else:
        failure, reason = _classify_failure(outcome)
    errors = () if state == "skipped" else find_error_lines(outcome.tail)
    return Verdict(state=state, failure=failure, reason=reason, last_error_lines=errors)


def exit_signal(returncode: int | None) -> int | None:
    """Number of the signal that ended a process, also where a shell in between reported it as 128 + number."""
    if returncode is None:
        return None
    number = -returncode if returncode < 0 else returncode - _SHELL_SIGNAL_BASE
    return number if number in {member.value for member in signal.Signals} else None


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    return signal.Signals(number).name


def _describe_completion(outcome: Outcome) -> str:
    """What a completed run did; empty if it is not completed."""
    if outcome.exit.returncode != 0 or not outcome.records or _first_not_finite(outcome.records) is not None:
        return ""
    last = outcome.records[-1].step
    if _trained_nothing(outcome.records):
        return ""
    if outcome.expected_steps is None:
        return f"Finished after step {last}; how many steps it should have made is not known."
    if last >= outcome.expected_steps - 1:
        return f"Reached its last step, {last}."
    stopped = _training_stopped(outcome.tail)
    return f"Reached target_eval_loss after step {last}." if "Target loss" in stopped else ""


def _classify_stop(outcome: Outcome) -> tuple[State, Failure | str | None, str]:
    after = _after_step(outcome.records)
    if outcome.exit.order is not None:
        return "skipped", outcome.exit.order.word, outcome.exit.order.reason
    if outcome.exit.stop == "orphaned":
        return "interrupted", None, f"Interrupted {after}: the program that started it died."
    if outcome.exit.stop == "interrupted":
        name = signal_name(outcome.exit.stop_signal) if outcome.exit.stop_signal else "a request"
        return "interrupted", None, f"Interrupted by {'Ctrl-C' if name == 'SIGINT' else name} {after}."
    if outcome.exit.stop == "timeout":
        return "timed_out", "timeout", f"Stopped by run.timeout_s {after}."
    return "timed_out", "hung", f"Stopped because no step finished for run.hang_after_s seconds, {after}."


def _classify_failure(outcome: Outcome) -> tuple[Failure, str]:
    code = outcome.exit.returncode
    if outcome.exit.problem:
        return "crash", f"The trainer could not be run to its end: {outcome.exit.problem}."
    if config := _describe_config_error(outcome):
        return "config", config
    not_finite = _first_not_finite(outcome.records)
    if not_finite is not None:
        return "not_finite_loss", f"The loss is not finite at step {not_finite.step} (it is {not_finite.loss})."
    number = exit_signal(code)
    errors = [line.text for line in outcome.tail if line.level >= ERROR]
    if code != 0 and any(_OUT_OF_MEMORY.search(text) for text in errors):
        return "out_of_memory", f"Out of memory {_after_step(outcome.records)}."
    if number == signal.SIGKILL and outcome.oom_killed:
        return "out_of_memory", f"Killed by the kernel's out-of-memory killer {_after_step(outcome.records)}."
    if number is not None:
        return "crash", f"Ended by {signal_name(number)} {_after_step(outcome.records)}."
    if code != 0:
        return "crash", f"Exit code {code} {_after_step(outcome.records)}{_describe_last_words(outcome)}"
    return _classify_silent_end(outcome)


def _describe_last_words(outcome: Outcome) -> str:
    """How the sentence about an exit code goes on: with the exception, or with the last line that may tell more."""
    if exception := find_exception(outcome.tail):
        return f": {exception}"
    lines = find_error_lines(outcome.tail)
    return f". Its last words: {lines[-1]}" if lines else "."


def _describe_config_error(outcome: Outcome) -> str:
    marker = _CHILD_EXITS.get(outcome.exit.returncode or 0, "")
    for line in outcome.tail:
        if marker and marker in line.text:
            if marker.endswith("DIFFERENCE"):
                return "MaxText would not run the composed configuration: it resolves some keys to other values."
            return line.text.partition("PLATFORM: ")[2] or "JAX runs on another platform than was composed."
        if _MAXTEXT_REFUSES in line.text and not outcome.records:
            return f"MaxText does not accept this configuration: {shorten(line.text.partition(_MAXTEXT_REFUSES)[2])}"
    return ""


def _classify_silent_end(outcome: Outcome) -> tuple[Failure, str]:
    """The trainer said that all is well (exit code 0), and it is not."""
    if not outcome.records:
        return "no_steps", "The trainer ended with exit code 0, but no steps were recorded."
    if _trained_nothing(outcome.records):
        return "config", "The batch was empty in every step (total_weights is 0): nothing was trained."
    wanted = f"of {outcome.expected_steps} steps" if outcome.expected_steps is not None else ""
    stopped = _training_stopped(outcome.tail)
    if "out of training data" in stopped:
        return "incomplete", f"Ran out of data {_after_step(outcome.records)} {wanted}."
    if "SIGTERM" in stopped:
        return "incomplete", f"The trainer received SIGTERM and stopped {_after_step(outcome.records)} {wanted}."
    return "incomplete", f"The trainer ended with exit code 0 {_after_step(outcome.records)} {wanted}."


def _training_stopped(tail: Sequence[Line]) -> str:
    return next((line.text for line in reversed(tail) if "Training stopped: " in line.text), "")


def _after_step(records: Sequence[StepRecord]) -> str:
    return f"after step {records[-1].step}" if records else "before the first step"


def _first_not_finite(records: Sequence[StepRecord]) -> StepRecord | None:
    return next((record for record in records if not math.isfinite(record.loss)), None)


def _trained_nothing(records: Sequence[StepRecord]) -> bool:
    return all(record.total_weights == 0 for record in records)
