"""Child process: load exported run folders through MaxText's own loader, as their commands would.

Reads a JSON file {name: arguments of MaxText's command}, writes a JSON file {name: null or the error's text}.
"""

import json
import sys
from pathlib import Path

from maxtext.configs import pyconfig


def main(source: Path, target: Path) -> None:
    """Load every export; the outcome of each is independent of the others."""
    exports = json.loads(source.read_text())
    target.write_text(json.dumps({name: load(arguments) for name, arguments in exports.items()}))


def load(arguments: list[str]) -> str | None:
    """None if MaxText accepts the arguments, else what it says."""
    try:
        # no nodes are there to be waited for
        pyconfig.initialize(["load", *arguments, "skip_jax_distributed_system=true", "log_config=false"])
    except Exception as error:  # the outcome under test
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
