"""Pure data: the runs of a folder as rows, ranked honestly."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primus_hydra.runs import Record, RecordError, RunFolder, is_abandoned

_SCORED = "completed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One run of a sweep."""

    folder: str
    """Name of the run folder."""
    differs: str
    """Overrides that not all runs share."""
    state: str
    """As in run.json; `abandoned` where the worker died, `unreadable` where the record is damaged."""
    failure: str | None
    reason: str
    rank: int | None
    """1 is the fastest; None where the run has no score. Runs that cannot be told apart share a rank."""
    step_time_s: float | None
    """Median after the warm-up."""
    step_time_p25_s: float | None
    step_time_p75_s: float | None
    num_steps_measured: int | None
    tokens_per_second_per_device: float | None
    tflops_per_second_per_device: float | None
    final_loss: float | None
    peak_device_memory_gib: float | None
    peak_host_memory_gib: float | None
    platform: str | None


def read_rows(sweep_dir: Path) -> list[Row]:
    """Every run folder inside a folder, best first, then those without a score in their order."""
    folders = [RunFolder(path.parent) for path in sorted(sweep_dir.glob("*/run.json"))]
    records = [_read(folder) for folder in folders]
    differs = _describe_differences([record.get("overrides") or [] for record in records])
    rows = [_make_row(folder, record, text) for folder, record, text in zip(folders, records, differs, strict=True)]
    return rank_rows(rows)


def _read(folder: RunFolder) -> Record:
    try:
        return folder.read_record()
    except RecordError as error:
        return {"state": "unreadable", "reason": str(error)}


def _describe_differences(overrides: Sequence[Iterable[str]]) -> list[str]:
    count = Counter(text for texts in overrides for text in set(texts))
    return [" ".join(text for text in texts if count[text] < len(overrides)) for texts in overrides]


def _make_row(folder: RunFolder, record: Mapping[str, Any], differs: str) -> Row:
    result: Mapping[str, Any] = record.get("result") or {}
    step_time: Mapping[str, Any] = result.get("step_time_s") or {}
    return Row(
        folder=folder.path.name,
        differs=differs or folder.path.name,
        state="abandoned" if is_abandoned(record) else str(record.get("state")),
        failure=record.get("failure"),
        reason=str(record.get("reason") or ""),
        rank=None,
        step_time_s=step_time.get("median"),
        step_time_p25_s=step_time.get("p25"),
        step_time_p75_s=step_time.get("p75"),
        num_steps_measured=result.get("num_steps_measured"),
        tokens_per_second_per_device=result.get("tokens_per_second_per_device"),
        tflops_per_second_per_device=result.get("tflops_per_second_per_device"),
        final_loss=result.get("final_loss"),
        peak_device_memory_gib=result.get("peak_device_memory_gib"),
        peak_host_memory_gib=result.get("peak_host_memory_gib"),
        platform=result.get("platform"),
    )


def rank_rows(rows: Sequence[Row]) -> list[Row]:
    """Rank completed runs by tokens/s/device; the others follow without a rank.

    Two runs share a rank when the slower one's middle half of step times overlaps that of the rank's fastest run,
    scaled to tokens: the difference is then within what steps vary by themselves.
    """
    scored = [row for row in rows if row.state == _SCORED and row.tokens_per_second_per_device is not None]
    scored.sort(key=lambda row: -(row.tokens_per_second_per_device or 0.0))
    ranked: list[Row] = []
    leader: Row | None = None
    for position, row in enumerate(scored, start=1):
        if leader is None or not _overlap(leader, row):
            leader = replace(row, rank=position)
            ranked.append(leader)
        else:
            ranked.append(replace(row, rank=leader.rank))
    return [*ranked, *(row for row in rows if row not in scored)]


def _overlap(faster: Row, slower: Row) -> bool:
    return _speed_at(slower, slower.step_time_p25_s) >= _speed_at(faster, faster.step_time_p75_s)


def _speed_at(row: Row, step_time_s: float | None) -> float:
    """Tokens/s/device if every step took this long."""
    assert row.tokens_per_second_per_device is not None
    assert row.step_time_s is not None
    return row.tokens_per_second_per_device * row.step_time_s / (step_time_s or row.step_time_s)
