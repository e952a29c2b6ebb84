"""One sweep that is hurt, taken up again and examined, until it is done."""

import random
import signal
import subprocess
import time
from pathlib import Path

from tests.faults.examiner import Examiner
from tests.faults.journal import read_journal
from tests.faults.moments import Freeze, choose_freeze, wait_for_a_moment
from tests.faults.place import Place
from tests.faults.processes import cut_power, list_processes, send, wait_until_gone
from tests.faults.roles import Role
from tests.faults.scenarios import Scenario
from tests.faults.tally import Tally

_START_S = 120.0
"""Limit of one start; longer means that something waits for ever."""
_LEAVE_S = 20.0
"""Limit for everything to be gone once the parent is: `run.grace_s` of the scenarios is 3."""
_ALL = "power cut"
_VICTIMS = {"parent": 5, "worker": 4, "child": 3, "reaper": 3, _ALL: 3}
"""Who is struck, a role or all -> how often."""
_WAYS = {"SIGKILL": 14, "SIGSTOP, SIGKILL": 2, "SIGTERM": 2, "SIGINT": 1, "SIGSTOP, SIGCONT": 1}


class VictimSweep:
    """A sweep of one scenario in a folder of its own."""

    def __init__(self, scenario: Scenario, place: Place, rng: random.Random, tally: Tally) -> None:
        self._scenario, self._place, self._rng, self._tally = scenario, place, rng, tally
        self._examiner = Examiner(folder=place.sweep, journal_file=place.journal, scenario=scenario)
        self._num_starts = 0
        self._history: list[str] = []
        self._started_at = 0
        self.findings: list[str] = []
        """Of this sweep."""

    def hurt(self, budget: int) -> None:
        """Strike up to `budget` times, then let the sweep end in peace, and see that it is done for good."""
        self._tally.num_sweeps += 1
        last = self._tally.num_kills + budget
        while self._tally.num_kills < last and not self.findings:
            if not self._start_and_strike(last):
                break
        if not self.findings:
            self._start_in_peace()
        if not self.findings:
            self._start_in_peace()
            self._find(self._examiner.look_at_the_end())
        self._tally.num_results += len(self._examiner.seen)
        journal = read_journal(self._place.journal)
        self._tally.num_completions += sum(attempt.ended for name in journal for attempt in journal[name])

    def _start_and_strike(self, last: int) -> bool:
        """One start; returns whether it was struck."""
        freeze = choose_freeze(self._rng, self._place.token) if self._rng.random() < 0.4 else None
        self._place.token.unlink(missing_ok=True)
        process = self._start(freeze)
        num_before = self._tally.strikes.total()
        while process.poll() is None and self._tally.num_kills < last:
            if self._strike(process, freeze, at_start=self._tally.strikes.total() == num_before):
                break
            freeze = None
            self._find(self._examiner.look(is_quiet=False))
        self._await_end(process, is_hasty=self._rng.random() < 0.25)
        return self._tally.strikes.total() > num_before

    def _start(self, freeze: Freeze | None) -> subprocess.Popen[bytes]:
        self._num_starts += 1
        self._tally.num_starts += 1
        again = (self._place.sweep / "sweep.json").exists() and self._rng.random() < 0.3
        command = [f"sweep.resume={self._place.sweep}"] if again else self._scenario.command(self._place.sweep)
        self._history.append(f"start {self._num_starts}{' by sweep.resume' if again else ''}")
        self._started_at = time.time_ns()
        return self._place.start(command, self._log, freeze)

    @property
    def _log(self) -> Path:
        return self._place.folder / f"start-{self._num_starts}.log"

    def _strike(self, process: subprocess.Popen[bytes], freeze: Freeze | None, *, at_start: bool) -> bool:
        """Wait for the moment and strike; returns whether the start comes to its end now."""
        frozen = self._await_moment(process, freeze, at_start=at_start)
        there = list_processes(self._place.mark)
        if process.pid not in there or self.findings:
            return True
        victim = self._choose_victim(there, frozen)
        way = "SIGKILL" if victim == _ALL else self._rng.choices(tuple(_WAYS), weights=tuple(_WAYS.values()))[0]
        phase = self._tell_phase(there)
        self._history.append(f"{way} to {victim}, {phase}" + (f", at {freeze}" if frozen is not None else ""))
        self._tally.strikes[victim, way] += 1
        self._tally.phases[phase] += 1
        if victim == _ALL:
            cut_power(self._place.mark)
        else:
            pids = [process.pid] if victim == "parent" else [pid for pid, role in there.items() if role == victim]
            self._hit(frozen if frozen in pids else self._rng.choice(pids), way)
        if frozen is not None:
            send([frozen], signal.SIGCONT)
        return victim in ("parent", _ALL) and "SIGCONT" not in way

    def _await_moment(self, process: subprocess.Popen[bytes], freeze: Freeze | None, *, at_start: bool) -> int | None:
        """Returns the pid of the frozen process, if one was to freeze and did."""
        deadline = time.monotonic() + _START_S

        def is_over() -> bool:
            return process.poll() is not None or time.monotonic() > deadline

        frozen = None
        if freeze is not None:
            frozen = freeze.wait(is_over)
        else:
            wait_for_a_moment(self._rng, self._place.sweep, self._place.journal, is_over, at_start=at_start)
        if time.monotonic() > deadline:
            self._find([f"Nothing happens any more: {list_processes(self._place.mark)}."])
        return frozen

    def _choose_victim(self, there: dict[int, Role], frozen: int | None) -> str:
        if frozen in there and self._rng.random() < 0.6:
            return there[frozen]
        present = {name: weight for name, weight in _VICTIMS.items() if name in there.values() or name == _ALL}
        return self._rng.choices(tuple(present), weights=tuple(present.values()))[0]

    def _hit(self, pid: int, way: str) -> None:
        for name in way.split(", "):
            if name != "SIGSTOP" and "SIGSTOP" in way:
                time.sleep(self._rng.uniform(0, 1.0))
            send([pid], signal.Signals[name])

    def _tell_phase(self, there: dict[int, Role]) -> str:
        roles = set(there.values())
        if "child" in roles:
            return "training"
        if "worker" in roles:
            return "a worker begins or ends a run"
        sweep_record = self._place.sweep / "sweep.json"
        if not sweep_record.exists() or sweep_record.stat().st_mtime_ns < self._started_at:
            return "composing" if self._num_starts == 1 else "composing again"
        logs = self._place.sweep.glob("*/train.log")
        if not any(log.stat().st_mtime_ns > self._started_at for log in logs):
            return "writing folders"
        return "between runs or reporting"

    def _await_end(self, process: subprocess.Popen[bytes], *, is_hasty: bool) -> None:
        """Wait until the start is over, and unless in haste all its processes with it; examine what it left."""
        try:
            code = process.wait(_START_S)
        except subprocess.TimeoutExpired:
            self._find([f"The sweep does not end: {list_processes(self._place.mark)}."])
            cut_power(self._place.mark)
            code = process.wait()
        said = self._log.read_text(encoding="utf-8", errors="replace")
        # Python's own words for a Ctrl-C while it is still loading the program.
        is_loading = said.startswith("Traceback") and said.rstrip().endswith("KeyboardInterrupt")
        if code == 2 or ("Traceback" in said and not is_loading):
            self._find([f"Exit code {code}:\n{said[-3000:]}"])
        if is_hasty:
            return
        began = time.monotonic()
        if left := wait_until_gone(self._place.mark, _LEAVE_S):
            self._find([f"Still there {_LEAVE_S:g} s after the parent: {left}."])
        self._tally.longest_leave_s = max(self._tally.longest_leave_s, time.monotonic() - began)
        self._find(self._examiner.look(is_quiet=True))

    def _start_in_peace(self) -> None:
        process = self._start(None)
        self._await_end(process, is_hasty=False)
        if process.returncode != 1:  # one point of every scenario fails
            self._find([f"Exit code {process.returncode} at the end instead of 1."])

    def _find(self, findings: list[str]) -> None:
        context = f"{self._place.folder} ({self._scenario.name}; {'; '.join(self._history[-6:])})"
        self.findings += findings
        self._tally.findings += [f"- {context}: {finding}" for finding in findings]
