"""Do something in a process that may be killed while it does it."""

import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path


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
