"""Runs that MaxText made without us: all that is known is a metrics file, a log, or both."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from primus_hydra.error_lines import find_exception
from primus_hydra.launch import expected_steps
from primus_hydra.log_lines import INFO, Line, level_of
from primus_hydra.maxtext.metrics import StepRecord, parse_platform_line
from primus_hydra.report.figures import clean_result, mapping
from primus_hydra.report.model import FOREIGN, Run
from primus_hydra.report.own_run import folder_name
from primus_hydra.report.step_files import LOG_ENDINGS, read_lines, read_records
from primus_hydra.results import compute_result
from primus_hydra.runs import RecordError, RunFolder

WARMUP_STEPS = 3
"""As of `run.warmup_steps`: a foreign run is measured like ours."""
_PART = re.compile(r"_step_\d+_to_step_\d+$")
_STEPS = re.compile(r"Config param (steps|learning_rate_schedule_steps): (-?\d{1,15})$")
_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|hipErrorOutOfMemory|\bMemoryError\b")
_TAIL_LINES = 400
_NOT_OURS = "Its command.sh was run outside primus_hydra, which has no record of how that ended."


@dataclass(slots=True)
class _Log:
    """What a log tells beside its steps."""

    composed: dict[str, Any] = field(default_factory=dict)
    """`steps` and the schedule's, as MaxText lists them at the start; in the shape of run.json's `composed`."""
    seen: dict[str, Any] = field(default_factory=dict)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))


def read_foreign_runs(folder: Path, sweep: str) -> list[Run]:
    """Every run whose files lie in this folder.

    One metrics file and one log belong together. Where there are several of either, each name is a run of its own:
    `full.log` and `full.jsonl` are one, `minimal.log` is another. MaxText's parts
    (`metrics_step_000000_to_step_000100.txt`, also in a folder `metrics/`) count as one file.

    Args:
        folder: absolute path.
        sweep: see `Run.sweep`.

    Raises:
        OSError: the folder cannot be read.
    """
    files = [file for file in sorted([*folder.iterdir(), *folder.glob("metrics/*")]) if file.is_file()]
    metrics, logs = _by_name(files, _is_metrics), _by_name(files, _is_log)
    if len(metrics) <= 1 and len(logs) <= 1:
        together = [file for group in (*metrics.values(), *logs.values()) for file in group]
        return [_make_run(folder_name(folder), folder, sweep, together)] if together else []
    return [
        _make_run(f"{folder_name(folder)}/{name}", folder, sweep, [*metrics.get(name, ()), *logs.get(name, ())])
        for name in dict.fromkeys([*metrics, *logs])
    ]


def adopt_steps(run: Run) -> Run:
    """A planned run, as a foreign one where its files hold steps all the same: somebody ran its command.sh.

    Args:
        run: its `step_files` are empty where steps in the folder belong to an earlier attempt.
    """
    records = read_records(run.step_files)
    if not records:
        return run
    log = _read_logs(run.step_files)
    composed = log.composed or {key: {"value": value} for key, value in run.composed.items()}
    result = compute_result(records, warmup_steps=_read_warmup(run), child=log.seen, max_rss_bytes=None)
    failure, reason = _judge(records, expected_steps(composed), log.tail)
    return replace(
        run, state=FOREIGN, failure=failure, reason=f"{_NOT_OURS} {reason}".strip(), result=clean_result(result)
    )


def _read_warmup(run: Run) -> int:
    try:
        record = RunFolder(run.folder).read_record()
    except RecordError:
        return WARMUP_STEPS
    steps = mapping(mapping(record.get("settings")).get("run")).get("warmup_steps")
    return steps if isinstance(steps, int) and steps >= 0 else WARMUP_STEPS


def _by_name(files: Sequence[Path], belongs: Callable[[Path], bool]) -> dict[str, list[Path]]:
    groups: dict[str, list[Path]] = {}
    for file in files:
        if belongs(file):
            groups.setdefault(_PART.sub("", file.stem), []).append(file)
    return groups


def _is_metrics(file: Path) -> bool:
    named = file.suffix == ".jsonl" or (file.suffix == ".txt" and file.name.startswith("metrics"))
    return named and bool(read_records([file]))


def _is_log(file: Path) -> bool:
    """Whether MaxText wrote it, be it that it ended before its first step."""
    marks = (b"completed step: ", b"Config param ", b"System Information: Jax")
    return file.suffix in LOG_ENDINGS and any(mark in line for line in read_lines(file) for mark in marks)


def _make_run(name: str, folder: Path, sweep: str, files: Sequence[Path]) -> Run:
    records = read_records(files)
    log = _read_logs(files)
    result = compute_result(records, warmup_steps=WARMUP_STEPS, child=log.seen, max_rss_bytes=None)
    failure, reason = _judge(records, expected_steps(log.composed), log.tail)
    return Run(
        name=name,
        folder=folder,
        sweep=sweep,
        point=name,
        repeat=1,
        differs="",
        overrides=(),
        state=FOREIGN,
        failure=failure,
        reason=reason,
        composed={},
        environment={},
        trainer=(),
        versions={},
        result=clean_result(result),
        command="",
        step_files=tuple(files),
    )


def _read_logs(files: Sequence[Path]) -> _Log:
    log, level = _Log(), INFO
    for line in (line for file in files if file.suffix in LOG_ENDINGS for line in read_lines(file)):
        text = line.decode("utf-8", "backslashreplace")
        level = level_of(text, level)
        log.tail.append(Line(level, text))
        log.seen |= parse_platform_line(text)
        if "Config param " in text and (found := _STEPS.search(text)):
            log.composed[found[1]] = {"value": int(found[2])}
    return log


def _judge(records: Sequence[StepRecord], expected: int | None, tail: Iterable[Line]) -> tuple[str | None, str]:
    """What is wrong with the run as far as its files show: kind of failure, or None, and a sentence."""
    if not records:
        return "no_steps", f"No training step is in its files.{_last_words(tail)}"
    wrong = next((record for record in records if not math.isfinite(record.loss)), None)
    if wrong is not None:
        return "not_finite_loss", f"The loss is not finite at step {wrong.step} (it is {wrong.loss})."
    last = records[-1].step
    if expected is not None and last >= expected - 1:
        return None, ""
    if exception := find_exception(tuple(tail)):
        kind = "out_of_memory" if _OUT_OF_MEMORY.search(exception) else "crash"
        return kind, f"Its log shows an exception after step {last}: {exception}"
    if expected is not None:
        return "incomplete", f"It has {expected} steps, and the last in its files is {last}."
    return None, ""


def _last_words(tail: Iterable[Line]) -> str:
    exception = find_exception(tuple(tail))
    return f" Its log ends with: {exception}" if exception else ""
