"""The script that draws the charts, Vega and its embedder in one text; making it takes seconds, so it is kept."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

import vl_convert

from primus_hydra.atomic_files import write_atomic

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def load_bundle() -> str:
    """The script, from the user's cache folder where this version of vl-convert left it there whole."""
    file = find_cache_folder() / f"vega-{version('vl-convert-python')}.js"
    kept = _read_whole(file)
    if kept is not None:
        return kept
    script = vl_convert.javascript_bundle(_SNIPPET)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, f"{_hash(script)}\n{script}")
    except OSError:
        pass  # A home that cannot be written costs the time again, nothing else.
    return script


def find_cache_folder() -> Path:
    """Where XDG wants it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else _find_home() / ".cache") / "primus_hydra"


def _find_home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container's user without a home
        return Path("/nonexistent")


def _read_whole(file: Path) -> str | None:
    """The script after the line with its hash; None where it is missing or damaged."""
    try:
        hashed, _, script = file.read_bytes().decode("utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if hashed == _hash(script) else None


def _hash(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
