"""What the program says: secrets are masked, and a console that went away does not end a run."""

import contextlib
import io
import os
import sys
from typing import TextIO

from primus_hydra.redaction import redact, secret_values


def prepare_streams() -> None:
    """Let a terminal that cannot show a letter show its code instead: that must not end a run or lose a table."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(text: str, *, file: TextIO | None = None) -> None:
    """Print a text; nothing happens where nobody can read it any more."""
    with contextlib.suppress(OSError, ValueError):
        print(redact(text, secret_values(os.environ)), file=file or sys.stdout, flush=True)
