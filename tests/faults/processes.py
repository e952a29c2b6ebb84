"""The processes of one campaign, found by a variable in their environment, whoever their parent is by now."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from tests.faults.roles import Role, tell_role

MARK = "FAULT_CAMPAIGN"
"""Name of the variable; its value is the campaign's own."""


def list_processes(mark: str) -> dict[int, Role]:
    """Pid -> role of all that run; what has ended and is only not reaped yet is left out."""
    found: dict[int, Role] = {}
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or folder.name == str(os.getpid()):
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and not _is_dead(folder):
                command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found[int(folder.name)] = tell_role(command)
        except OSError:  # it ended while we looked
            continue
    return found


def _is_dead(folder: Path) -> bool:
    return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] in "ZX"


def send(pids: Iterable[int], number: int) -> None:
    """Signal processes, whether they are still there or not."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def cut_power(mark: str) -> None:
    """Kill all at the same time: nobody sees another die."""
    stopped: set[int] = set()
    while new := list_processes(mark).keys() - stopped:
        send(new, signal.SIGSTOP)
        stopped |= new
    send(stopped, signal.SIGKILL)


def wait_until_gone(mark: str, timeout_s: float) -> dict[int, Role]:
    """Wait for the end of all; returns what is still there, then killed by us."""
    deadline = time.monotonic() + timeout_s
    while (left := list_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        cut_power(mark)
    return left
