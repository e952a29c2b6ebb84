"""When to strike: instants of a sweep's life, chosen by chance so that all its phases are hit."""

import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.faults.roles import Role

_POLL_S = 0.002
_CHANGES: dict[Role, int] = {"parent": 300, "worker": 50, "reaper": 4, "child": 40}
"""About as many changes, starts and signals as a process of that role makes."""

IsOver = Callable[[], bool]
"""Whether the start of the sweep has come to its end."""


@dataclass(frozen=True, kw_only=True)
class Freeze:
    """One process stops itself just before it changes something."""

    role: Role
    number: int
    token: Path
    """The file that it leaves its pid in."""
    event: str = ""
    """Python's name of the only kind of change that counts; empty: all do."""

    def order(self, folder: Path) -> str:
        """What `startup/sitecustomize.py` reads from its environment."""
        return json.dumps(asdict(self) | {"folder": str(folder), "token": str(self.token)})

    def wait(self, is_over: IsOver) -> int | None:
        """Returns the pid of the frozen process; None if the sweep ended before."""
        _wait_until(lambda: self.token.exists() and self.token.read_text(encoding="ascii").endswith("\n"), is_over)
        text = self.token.read_text(encoding="ascii") if self.token.exists() else ""
        return int(text) if text.endswith("\n") else None


def choose_freeze(rng: random.Random, token: Path) -> Freeze:
    """Early changes as often as late ones, on a logarithmic scale."""
    role = rng.choices(tuple(_CHANGES), weights=(5, 4, 1, 2))[0]
    return Freeze(role=role, number=int(math.exp(rng.uniform(0, math.log(_CHANGES[role])))), token=token)


def wait_for_a_moment(rng: random.Random, folder: Path, journal: Path, is_over: IsOver, *, at_start: bool) -> None:
    """Wait for some time, or for something that happens in the sweep's folder and a short time more."""
    if rng.random() < (0.5 if at_start else 0.2):
        _wait_until(_after(rng.uniform(0, 5.0 if at_start else 1.5)), is_over)
        return
    since = time.time_ns()
    lines = _count_lines(journal)
    wanted = lines + 1 + int(rng.expovariate(1 / 12))
    events: list[tuple[int, Callable[[], bool]]] = [
        (4, lambda: _count_lines(journal) >= wanted),
        (2, lambda: '"end"' in _tail(journal, lines)),
        (2, lambda: any(folder.glob("*/.*.tmp")) or any(folder.glob(".*.tmp"))),
        (1, lambda: _is_newer(folder / "sweep.json", since)),
        (2, lambda: _is_newer(folder / "results.csv", since)),
        (1, lambda: any(_is_newer(file, since) for file in folder.glob("*/.reserve"))),
        (1, lambda: any(_is_newer(file, since) for file in folder.glob("*/run.json"))),
        (1, lambda: any(_is_newer(file, since) for file in folder.glob("rungs.json"))),
    ]
    event = rng.choices([event for _, event in events], weights=[weight for weight, _ in events])[0]
    rest_s = rng.choice((0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.5)))
    _wait_until(event, is_over)
    _wait_until(_after(rest_s), is_over)


def _wait_until(condition: Callable[[], bool], is_over: IsOver) -> None:
    while not condition() and not is_over():
        time.sleep(_POLL_S)


def _after(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _is_newer(file: Path, since: int) -> bool:
    try:
        return file.stat().st_mtime_ns > since
    except OSError:
        return False


def _count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _tail(file: Path, lines: int) -> str:
    return "".join(file.read_text(encoding="utf-8").splitlines()[lines:]) if file.exists() else ""
