"""What happens to a whole sweep on a full disk, in a folder that turns read-only, beside a second start, and frozen."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from primus_hydra.runs import RunFolder
from tests.faults.journal import read_journal
from tests.faults.moments import Freeze
from tests.faults.place import Place
from tests.faults.processes import MARK, wait_until_gone
from tests.faults.scenarios import Scenario

pytestmark = pytest.mark.slow
SMALL = Scenario(name="small", settings=("steps=20",), stubs=("step_s=0.002", "step_s=0.1", "step_s=0.003"), endings={})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place whose processes are gone at the end."""
    place = Place(folder=tmp_path, mark=f"{MARK}-{tmp_path}")
    yield place
    assert not wait_until_gone(place.mark, timeout_s=20)


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """The sweep's folder as a file system of its own, of 1 MiB."""
    place.sweep.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place.sweep)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield place.sweep
    subprocess.run(["umount", str(place.sweep)], check=True)


def run(place: Place, log: str) -> tuple[int, str]:
    """Run the sweep to its end; returns the exit code and what it said, on one line."""
    code = place.start(SMALL.command(place.sweep), place.folder / log).wait(120)
    return code, " ".join((place.folder / log).read_text(encoding="utf-8").split())


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_steps(place: Place, point: int) -> int:
    journal = read_journal(place.journal)
    return sum(len(attempt.losses) for name in journal if name.startswith(f"{point:04d}-") for attempt in journal[name])


def read_runs(place: Place) -> list[dict[str, Any]]:
    return [RunFolder(file.parent).read_record() for file in sorted(place.sweep.glob("*/run.json"))]


def states(place: Place) -> list[str]:
    return [record["state"] for record in read_runs(place)]


def fill(disk: Path) -> Path:
    """Take all room that is left; returns the file that takes it."""
    file = disk / "filler"
    with file.open("ab", buffering=0) as stream:
        for size in (4096, 1):
            while True:
                try:
                    stream.write(b"x" * size)
                except OSError:
                    break
    return file


def test_a_disk_that_runs_full_loses_no_result_and_the_rest_runs_later(place: Place, small_disk: Path) -> None:
    process = place.start(SMALL.command(place.sweep), place.folder / "full.log")
    wait_for(lambda: count_steps(place, 1) >= 2)
    filler = fill(small_disk)
    assert process.wait(120) == 1
    first, second, third = read_runs(place)
    assert (first["state"], second["state"], third["state"]) == ("completed", "failed", "planned")
    assert "No space left on device" in second["reason"]
    said = (place.folder / "full.log").read_text(encoding="utf-8")
    assert "make room there" in said
    assert "Traceback" not in said

    fill(small_disk)  # what was kept for the record of the end is free by now
    code, said = run(place, "still-full.log")
    assert code == 2, said
    assert "Nothing was started" in said
    assert "No space left on device" in said
    assert read_runs(place) == [first, second, third]

    filler.unlink()
    code, said = run(place, "again.log")
    assert code == 0, said
    assert "3 points: 1 done, 1 run again, 1 run" in said
    assert states(place) == ["completed"] * 3
    assert read_runs(place)[0] == first


def test_a_folder_that_turns_read_only_loses_no_result(place: Place, small_disk: Path) -> None:
    assert run(place, "first.log")[0] == 0
    before = read_runs(place)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, said = run(place, "read-only.log")
    assert code == 2, said
    assert "there is no permission to write in" in said
    assert "Nothing was started" in said
    assert "Traceback" not in said
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    code, said = run(place, "again.log")
    assert code == 0, said
    assert "3 points: 3 done" in said
    assert read_runs(place) == before


def test_of_two_starts_at_the_same_time_one_runs_the_sweep(place: Place) -> None:
    both = [place.start(SMALL.command(place.sweep), place.folder / f"{number}.log") for number in range(2)]
    codes = sorted(process.wait(120) for process in both)
    assert codes == [0, 2]
    assert states(place) == ["completed"] * 3
    assert [len(attempts) for attempts in read_journal(place.journal).values()] == [1, 1, 1]


def test_a_start_that_found_no_folder_trains_nothing_again_that_another_one_has_trained(place: Place) -> None:
    freeze = Freeze(role="parent", event="os.mkdir", number=1, token=place.token)
    late = place.start(SMALL.command(place.sweep), place.folder / "late.log", freeze)
    frozen = freeze.wait(lambda: late.poll() is not None)
    assert frozen == late.pid
    code, said = run(place, "early.log")
    assert code == 0, said
    os.kill(late.pid, signal.SIGCONT)
    assert late.wait(120) == 2
    assert "Another start of this sweep came first" in (place.folder / "late.log").read_text(encoding="utf-8")
    assert [len(attempts) for attempts in read_journal(place.journal).values()] == [1, 1, 1]


def test_runs_end_and_are_recorded_while_the_parent_is_frozen(place: Place) -> None:
    process = place.start(SMALL.command(place.sweep), place.folder / "frozen.log")
    wait_for(lambda: count_steps(place, 1) >= 1)
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: states(place)[1] == "completed")
    process.send_signal(signal.SIGCONT)
    assert process.wait(120) == 0
    assert states(place) == ["completed"] * 3
