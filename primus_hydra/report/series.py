"""What the charts that compare points show, as plain data; a chart without data is an empty tuple."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from primus_hydra.objective import OBJECTIVES, Objective
from primus_hydra.report.model import FINISHED
from primus_hydra.report.points import Point

MAX_POINTS = 30
"""The best points that a chart with one line a point shows."""
SAME_MEMORY = 1.01
"""Peaks whose ratio is less than this count as equal: an allocator's noise must not make a front."""
_SPEEDS = ("tokens_per_second_per_device", "tflops_per_second_per_device", "step_time_s")


class ScorePoint(NamedTuple):
    """The objective of one point."""

    label: str
    score: float
    low: float
    high: float
    """The interval that decides about ties."""
    rank: int


class MemoryPoint(NamedTuple):
    """Peak memory of one point, GiB: median, least and most of its completed repeats."""

    label: str
    memory_gib: float
    low_gib: float
    high_gib: float
    rank: int | None


class FrontPoint(NamedTuple):
    """One point as a trade of memory for speed."""

    label: str
    memory_gib: float
    speed: float
    on_front: bool
    """No other point is better in one of the two and not worse in the other; see SAME_MEMORY."""
    rank: int | None


def list_scores(points: Sequence[Point], limit: int = MAX_POINTS) -> tuple[ScorePoint, ...]:
    """Points with a score, best first, at most `limit`."""
    found = []
    for label, row in ((point.label, point.row) for point in points):
        if row.score is not None and row.rank is not None:
            low = row.score if row.score_low is None else row.score_low
            high = row.score if row.score_high is None else row.score_high
            found.append(ScorePoint(label, row.score, min(low, row.score), max(high, row.score), row.rank))
    return tuple(found[:limit])


def find_memory_kind(points: Sequence[Point]) -> Literal["device", "host"] | None:
    """Which memory is shown: the device's if any completed point knows it, or else the host's."""
    completed = [point.row for point in points if point.row.state in FINISHED]
    if any(row.peak_device_memory_gib is not None for row in completed):
        return "device"
    return "host" if any(row.peak_host_memory_gib is not None for row in completed) else None


def list_memory(points: Sequence[Point], limit: int = MAX_POINTS) -> tuple[MemoryPoint, ...]:
    """Completed points whose peak memory is known, in the order of the ranking, at most `limit`."""
    kind = find_memory_kind(points)
    found = []
    for point in points:
        memory = _read_memory(point, kind)
        if memory is not None:
            repeats = [memory, *_repeat_figures(point, f"peak_{kind}_memory_gib")]
            found.append(MemoryPoint(point.label, memory, min(repeats), max(repeats), point.row.rank))
    return tuple(found[:limit])


def choose_speed(objective: Objective) -> Objective:
    """What stands against memory: the objective itself where it is a speed, tokens/s/device where it is not."""
    return objective if objective.name in _SPEEDS else OBJECTIVES[_SPEEDS[0]]


def list_front(points: Sequence[Point], objective: Objective) -> tuple[FrontPoint, ...]:
    """Completed points with memory and speed, least memory first, the faster first among equals."""
    kind, speed = find_memory_kind(points), choose_speed(objective)
    known = [
        (memory, value, point)
        for point in points
        if (memory := _read_memory(point, kind)) is not None and (value := getattr(point.row, speed.name)) is not None
    ]
    sign = -1 if speed.maximize else 1
    known.sort(key=lambda item: (item[0], sign * item[1]))
    memories = [memory for memory, _, _ in known]
    best = list(accumulate((-sign * value for _, value, _ in known), max))
    front = []
    for memory, value, point in known:
        affordable = best[bisect_left(memories, max(memory * SAME_MEMORY, math.nextafter(memory, math.inf))) - 1]
        num_cheaper = bisect_right(memories, memory / SAME_MEMORY)
        is_cheapest = not num_cheaper or best[num_cheaper - 1] < -sign * value
        on_front = affordable == -sign * value and is_cheapest
        front.append(FrontPoint(point.label, memory, value, on_front, point.row.rank))
    return tuple(front)


def _read_memory(point: Point, kind: str | None) -> float | None:
    if kind is None or point.row.state not in FINISHED:
        return None
    return point.row.peak_device_memory_gib if kind == "device" else point.row.peak_host_memory_gib


def _repeat_figures(point: Point, name: str) -> list[float]:
    figures = [run.result.get(name) for run in point.runs if run.state in FINISHED]
    return [figure for figure in figures if isinstance(figure, int | float)]
