"""Python loads this at every start: one process of the campaign stops itself at a chosen point of its life.

FAULT_FREEZE holds `{"role", "number", "event", "folder", "token"}`. The first process of that role that is about to
change something in the folder, to start a program or to signal one, for the `number`th time, writes its pid into the
token and stops (SIGSTOP), just before. With an `event` (`os.mkdir`) only such ones count. Whoever waits for the token
looks at it then, and decides who is killed.
"""

import json
import os
import signal
import sys
from pathlib import Path

from tests.faults.roles import tell_role

_CHANGES = frozenset({"os.rename", "os.mkdir", "os.remove", "os.truncate"})
_ACTS = frozenset({"subprocess.Popen", "os.kill", "os.killpg"})


def _is_change(event: str, arguments: tuple[object, ...], folder: str) -> bool:
    if event == "open":
        flags = arguments[2]
        if not (isinstance(flags, int) and flags & os.O_ACCMODE):
            return False
    elif event not in _CHANGES:
        return False
    path = arguments[0]
    return isinstance(path, str | bytes | os.PathLike) and str(Path(os.fsdecode(path)).absolute()).startswith(folder)


def _freeze_at(number: int, event_name: str, folder: str, token: str) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in _ACTS and not _is_change(event, arguments, folder):
            return
        if event_name not in ("", event):
            return
        seen += 1
        if seen != number:
            return
        try:
            descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:  # another process was the first
            return
        os.write(descriptor, f"{os.getpid()}\n".encode())
        os.close(descriptor)
        signal.raise_signal(signal.SIGSTOP)

    sys.addaudithook(hook)


if _order := os.environ.get("FAULT_FREEZE"):
    _asked = json.loads(_order)
    if tell_role(sys.orig_argv) == _asked["role"]:
        _freeze_at(_asked["number"], _asked["event"], _asked["folder"], _asked["token"])
