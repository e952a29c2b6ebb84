"""What the program says: secrets are masked, and a console that went away does not end a run."""

import contextlib
import os
import sys
from typing import TextIO

from primus_hydra.redaction import redact, secret_values


def tell(text: str, *, file: TextIO | None = None) -> None:
    """Print a text; nothing happens where nobody can read it any more."""
    with contextlib.suppress(OSError, ValueError):
        print(redact(text, secret_values(os.environ)), file=file or sys.stdout, flush=True)
