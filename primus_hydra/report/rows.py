"""Pure data: the runs of a folder as rows, ranked honestly."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
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
    differs = describe_differences([_texts(record.get("overrides")) for record in records])
    rows = [_make_row(folder, record, text) for folder, record, text in zip(folders, records, differs, strict=True)]
    return rank_rows(rows)


def _read(folder: RunFolder) -> Record:
    try:
        record = folder.read_record()
    except RecordError as error:
        return {"state": "unreadable", "reason": str(error)}
    if not isinstance(record.get("state"), str):
        return {"state": "unreadable", "reason": f"{folder.run_json} is damaged: it has no state."}
    return record


def describe_differences(overrides: Sequence[Sequence[str]]) -> list[str]:
    """For each run the overrides that not all runs share, as one text; empty where nothing differs."""
    count = Counter(text for texts in overrides for text in set(texts))
    return [" ".join(text for text in texts if count[text] < len(overrides)) for texts in overrides]


def _make_row(folder: RunFolder, record: Record, differs: str) -> Row:
    """A row holds no NaN and nothing of a wrong type, whatever the record says: it is printed, ranked and written."""
    result = _mapping(record.get("result"))
    step_time = _mapping(result.get("step_time_s"))
    # A record of another version may hold figures in spite of its few steps.
    speeds = {} if result.get("too_few_steps") else result
    count = _number(result.get("num_steps_measured"))
    return Row(
        folder=folder.path.name,
        differs=differs or folder.path.name,
        state="abandoned" if is_abandoned(record) else record["state"],
        failure=_text(record.get("failure")),
        reason=_text(record.get("reason")) or "",
        rank=None,
        step_time_s=_number(step_time.get("median")),
        step_time_p25_s=_number(step_time.get("p25")),
        step_time_p75_s=_number(step_time.get("p75")),
        num_steps_measured=None if count is None else int(count),
        tokens_per_second_per_device=_number(speeds.get("tokens_per_second_per_device")),
        tflops_per_second_per_device=_number(speeds.get("tflops_per_second_per_device")),
        final_loss=_number(result.get("final_loss"), signed=True),
        peak_device_memory_gib=_number(result.get("peak_device_memory_gib")),
        peak_host_memory_gib=_number(result.get("peak_host_memory_gib")),
        platform=_text(result.get("platform")),
    )


def rank_rows(rows: Sequence[Row]) -> list[Row]:
    """Rank completed runs by tokens/s/device; the others follow without a rank.

    Two runs share a rank when the slower one's middle half of step times overlaps that of the rank's fastest run,
    scaled to tokens: the difference is then within what steps vary by themselves. A run that is clearly slower gets
    its position, so a third run behind two that share rank 1 has rank 3.
    """
    scored = sorted(filter(_has_score, rows), key=lambda row: -(row.tokens_per_second_per_device or 0.0))
    ranked: list[Row] = []
    leader: Row | None = None
    for position, row in enumerate(scored, start=1):
        if leader is None or not _overlap(leader, row):
            leader = replace(row, rank=position)
            ranked.append(leader)
        else:
            ranked.append(replace(row, rank=leader.rank))
    return [*ranked, *(row for row in rows if not _has_score(row))]


def _has_score(row: Row) -> bool:
    return row.state == _SCORED and bool(row.tokens_per_second_per_device) and bool(row.step_time_s)


def _overlap(faster: Row, slower: Row) -> bool:
    return _speed_at(slower, slower.step_time_p25_s) >= _speed_at(faster, faster.step_time_p75_s)


def _speed_at(row: Row, step_time_s: float | None) -> float:
    """Tokens/s/device if every step took this long."""
    assert row.tokens_per_second_per_device is not None
    assert row.step_time_s is not None
    return row.tokens_per_second_per_device * row.step_time_s / (step_time_s or row.step_time_s)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _number(value: object, *, signed: bool = False) -> float | None:
    """A figure; None where it is none: text, NaN, infinite, negative unless `signed`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= sys.float_info.max or (value < 0 and not signed):  # NaN compares as False
        return None
    return value
