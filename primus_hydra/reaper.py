"""The process between a worker and a trainer: nothing of a run outlives its worker, however either of them ends.

Run as a file, never imported by the program: `python -P reaper.py CONTROL_FD LOCK_FD`. CONTROL_FD is a stream socket:

    worker -> reaper  one JSON line {"argv", "env", "cwd"}; then single bytes: T = SIGTERM the trainer's process group,
                      K = SIGKILL everything. End of stream means that the worker is dead, and acts like K.
    reaper -> worker  JSON lines: {"pid"} or {"error"}, then {"returncode", "max_rss_bytes"}

Why a process, and not `preexec_fn` with PR_SET_PDEATHSIG: that runs Python code between fork and exec, covers only the
direct child, and fires when the thread that forked ends. The reaper works for any program, and as a "subreaper" it
inherits grandchildren that leave the trainer's group or session. It holds the folder's lock (LOCK_FD) until the last
process is gone, so a second worker cannot start beside the leftovers of a first one that was killed.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_PASSES = 20
_PATIENCE_S = 0.5


def main() -> int:
    """Start the trainer, obey the worker, report the end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for descriptor in (control.fileno(), int(sys.argv[2])):
        os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wakeup, writing = _watch_signals()
    line, commands = _read_line(control)
    if not line:
        return 1  # the worker died before it said what to start
    spec = json.loads(line)
    try:
        # No handle to close over: the trainer must see none of our descriptors, and its own session.
        trainer = subprocess.Popen(
            spec["argv"], env=spec["env"], cwd=spec["cwd"], stdin=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:  # a text that no program can be given, such as one with NUL
        _report(control, {"error": f"{spec['argv'][0]}: {getattr(error, 'strerror', None) or error}"})
        return 1
    _report(control, {"pid": trainer.pid})
    if commands:
        _obey(commands, trainer.pid)
    _obey_until_exit(control, wakeup, trainer.pid)
    _kill_everything(trainer.pid)
    _, status, usage = os.wait4(trainer.pid, 0)
    trainer.returncode = os.waitstatus_to_exitcode(status)
    # ru_maxrss of a waited-for child covers the children that it waited for: KiB on Linux, bytes on macOS.
    unit = 1024 if sys.platform == "linux" else 1
    _report(control, {"returncode": trainer.returncode, "max_rss_bytes": usage.ru_maxrss * unit})
    signal.set_wakeup_fd(-1)
    writing.close()
    return 0


def _read_line(control: socket.socket) -> tuple[bytes, bytes]:
    """The first line, and commands that came behind it; no line where the stream ends before one."""
    data = b""
    while b"\n" not in data:
        if not (chunk := control.recv(1 << 16)):
            return b"", b""
        data += chunk
    line, _, commands = data.partition(b"\n")
    return line, commands


def _watch_signals() -> tuple[socket.socket, socket.socket]:
    """Turn SIGCHLD into something to select on; outlive every other polite signal, the worker decides.

    Handlers, not SIG_IGN: an ignored signal would stay ignored in the trainer.
    """
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    return reading, writing


def _obey_until_exit(control: socket.socket, wakeup: socket.socket, trainer: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(wakeup, selectors.EVENT_READ)
        while not _has_exited(trainer):
            for key, _ in selector.select():
                if key.fileobj is wakeup:
                    wakeup.recv(4096)
                    continue
                commands = control.recv(64)
                if not commands:
                    selector.unregister(control)
                _obey(commands, trainer)


def _obey(commands: bytes, trainer: int) -> None:
    """Do what the worker says; no commands mean that it is dead."""
    if commands and b"K" not in commands:
        _signal_group(trainer, signal.SIGTERM)
    else:
        _kill_everything(trainer)


def _has_exited(trainer: int) -> bool:
    """Whether the trainer is a zombie. Orphans that came to us are reaped on the way.

    The trainer itself is left unreaped, so that its process group id cannot be given to somebody else.
    """
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return False
        if ended.si_pid == trainer:
            return True
        os.waitpid(ended.si_pid, 0)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _kill_everything(trainer: int) -> None:
    """SIGKILL the trainer's group and every descendant, also those that left the group or the session."""
    import psutil  # not at the top: the trainer's start need not wait for it

    _signal_group(trainer, signal.SIGKILL)
    # A process may fork while we look: look again until nobody is left. The number of looks is bounded because
    # a process stuck in the kernel cannot be killed at all.
    for _ in range(_PASSES):
        family = [child for child in psutil.Process().children(recursive=True) if child.pid != trainer]
        for child in family:
            with contextlib.suppress(psutil.Error):
                child.kill()
        _, alive = psutil.wait_procs(family, timeout=_PATIENCE_S)
        if not alive:
            return


def _report(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody listens once the worker is dead
        control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
