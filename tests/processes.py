"""Do something in a process that may be killed while it does it."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

StartPython = Callable[..., subprocess.Popen[str]]
"""Arguments of the interpreter, options of Popen -> the process, which speaks through its `stdout`."""


@contextlib.contextmanager
def python_starter() -> Iterator[StartPython]:
    """Start Python programs of this checkout; whatever is left of them is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until_gone(*pids: int) -> None:
    """Fail if a process is still there after 20 s; zombies are gone."""
    processes = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def wait_until_written(file: Path, words: str) -> None:
    """Fail if a log does not hold these words after 20 s: a worker copies what the trainer says a moment later."""
    deadline = time.monotonic() + 20
    while words not in file.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, f"{file} does not say {words!r}"
        time.sleep(0.02)


def in_a_process_of_its_own(action: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> int:
    """Returns the exit code: 3 for an OSError, negative for a signal."""

    def run() -> None:
        prepare()
        try:
            action()
        except OSError:
            sys.exit(3)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def kill_before_change(number: int, path: Path) -> Callable[[], None]:
    """Have this process killed just before it changes something in a folder for the `number`th time."""

    def prepare() -> None:
        changes = itertools.count(1)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if _is_change(event, arguments) and str(path) in str(arguments[0]) and next(changes) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    return prepare


def _is_change(event: str, arguments: tuple[object, ...]) -> bool:
    flags = arguments[2] if event == "open" else 0
    return event in ("os.rename", "os.mkdir", "os.remove") or (isinstance(flags, int) and bool(flags & os.O_ACCMODE))
