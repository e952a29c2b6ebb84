"""What the trainers say that they did: the campaign's own evidence, independent of every run folder."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(kw_only=True)
class Attempt:
    """One trainer process."""

    steps: int
    """That it was to make."""
    losses: list[float] = field(default_factory=list)
    """One a finished step."""
    step_times_s: list[float] = field(default_factory=list)
    ended: bool = False
    """Whether it came behind its last step."""


Journal = dict[str, list[Attempt]]
"""Name of the run folder -> its attempts, in order."""


def read_journal(path: Path) -> Journal:
    """Read what was written so far."""
    attempts: dict[str, Attempt] = {}
    journal: Journal = defaultdict(list)
    for line in path.read_bytes().splitlines() if path.exists() else []:
        entry = json.loads(line)
        if entry["event"] == "start":
            attempts[entry["attempt"]] = Attempt(steps=int(entry["steps"]))
            journal[entry["run"]].append(attempts[entry["attempt"]])
            continue
        attempt = attempts[entry["attempt"]]
        if entry["event"] == "step":
            attempt.losses.append(entry["loss"])
            attempt.step_times_s.append(entry["step_time_s"])
        attempt.ended = entry["event"] == "end"
    return journal
