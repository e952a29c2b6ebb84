"""Child process: load configurations through MaxText's own loader and say which were refused.

Reads a JSON file {name: flat keys}, writes a JSON file {name: null or the error's text}.
"""

import json
import sys
import tempfile
from pathlib import Path

from maxtext.configs import pyconfig
from omegaconf import OmegaConf


def main(source: Path, target: Path) -> None:
    """Load every configuration; the outcome of each is independent of the others."""
    outcomes: dict[str, str | None] = {}
    for name, keys in json.loads(source.read_text()).items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "maxtext.yml"
            OmegaConf.save(OmegaConf.create(keys), file)
            outcomes[name] = load(file, keys)
    target.write_text(json.dumps(outcomes))


def load(file: Path, keys: dict[str, object]) -> str | None:
    """None if MaxText accepts the file and resolves the keys to the values in it, else what it says."""
    try:
        config = pyconfig.initialize(["load", str(file)])
    except Exception as error:  # the outcome under test
        return f"{type(error).__name__}: {error}"
    wrong = [
        name for name in ("steps", "attention", "remat_policy", "quantization") if getattr(config, name) != keys[name]
    ]
    return f"resolved differently: {wrong}" if wrong else None


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
