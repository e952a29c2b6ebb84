"""What a campaign did, and what it found."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Tally:
    """Counts over all sweeps of a campaign."""

    strikes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(Victim, way)."""
    phases: Counter[str] = field(default_factory=Counter)
    """Of strikes."""
    num_sweeps: int = 0
    num_starts: int = 0
    num_completions: int = 0
    """Trainers that came behind their last step, as they say."""
    num_results: int = 0
    """Different results that were ever on record."""
    longest_leave_s: float = 0.0
    """Longest time between the end of a parent and that of the last one of its processes."""
    findings: list[str] = field(default_factory=list)

    @property
    def num_kills(self) -> int:
        """Strikes that were a SIGKILL."""
        return sum(number for (_, way), number in self.strikes.items() if "SIGKILL" in way)

    def describe(self) -> str:
        """A few lines."""
        head = (
            f"{self.num_kills} kills in {self.strikes.total()} strikes on {self.num_sweeps} sweeps, "
            f"{self.num_starts} starts. {self.num_completions} trainers reached their end, {self.num_results} "
            f"results came on record. All was gone {self.longest_leave_s:.1f} s after the parent, or sooner."
        )
        victims = ", ".join(f"{number} {victim} {way}" for (victim, way), number in sorted(self.strikes.items()))
        phases = ", ".join(f"{number} {phase}" for phase, number in self.phases.most_common())
        found = f"Findings: {len(self.findings)}"
        return "\n".join((head, f"Victims: {victims}", f"Phases: {phases}", found, *self.findings))
