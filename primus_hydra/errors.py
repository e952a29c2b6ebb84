"""What can be wrong with a configuration, and how it is told to a person."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing wrong (or suspicious) about a composed configuration."""

    what: str
    """A full sentence that states the fact, with the offending value."""
    allowed: str = ""
    """A full sentence that says which values would be accepted."""
    fix: str = ""
    """A full sentence that says what to write or do instead."""
    origin: str = ""
    """Where the value came from: a file, a group choice, or "command line"."""
    rule: str = ""
    """Name for `run.accept=[...]`; empty where the problem cannot be overruled."""
    severity: Literal["refuse", "warn"] = "refuse"
    """`refuse` stops before anything starts; `warn` is shown and recorded."""
    scope: Literal["value", "combination"] = "value"
    """`value`: wrong whatever the other values are, so a sweep stops; `combination`: only this point is left out."""
    evidence: str = ""
    """Source of the fact: an upstream issue, a measurement, a source file."""


class ConfigError(Exception):
    """The configuration is wrong: nothing was started, and a retry cannot help (exit code 2)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(format_problems(self.problems))


class SweepRefused(SystemExit):
    """The same from inside Hydra's plugins: Hydra would print a traceback for an ordinary exception."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(2)


def format_problem(problem: Problem) -> str:
    """Render one problem as plain text: the fact, what is allowed, what to do, where it came from."""
    lines = [problem.what]
    lines += [text for text in (problem.allowed, problem.fix) if text]
    if problem.rule:
        verb = "overrule" if problem.severity == "refuse" else "silence"
        lines.append(f"To {verb} this rule: 'run.accept=[{problem.rule}]'")
    if problem.evidence:
        lines.append(f"Evidence: {problem.evidence}")
    if problem.origin:
        lines.append(f"Set by: {problem.origin}")
    return "\n  ".join(lines)


def format_problems(problems: Iterable[Problem]) -> str:
    """Render several problems, one block each, in the order given."""
    return "\n".join(f"- {format_problem(problem)}" for problem in problems)


def distinct_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Problems that say the same to a person once, whatever their evidence and origin: the first of them."""
    found: dict[tuple[str, ...], Problem] = {}
    for problem in problems:
        found.setdefault((problem.what, problem.allowed, problem.fix, problem.severity), problem)
    return list(found.values())


def format_refusal(problems: Sequence[Problem]) -> str:
    """What a person reads when nothing was started."""
    problems = distinct_problems(problems)
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return f"Nothing was started: {count}.\n{format_problems(problems)}"
