"""Names of run folders and runs: readable, safe on every file system, never twice the same."""

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from primus_hydra.grammar import try_parse, write_value
from primus_hydra.redaction import is_secret_name

_MAX_SLUG_LENGTH = 80
_ENV = "platform.env."
_IMPLIED = re.compile(r"^(model|experiment)=|^platform\.(env|xla_flags)\.")
"""Starts of overrides whose rest says enough."""


def make_slug(overrides: Sequence[str]) -> str:
    """What a person typed, as a file name: `model=llama3_8B steps=20` -> `llama3_8B-steps=20`."""
    typed = [text.lstrip("+") for text in overrides]
    words = [_IMPLIED.sub("", text) for text in typed if not _is_plumbing(text)]
    slug = re.sub(r"[^A-Za-z0-9._=-]+", "_", re.sub(r"['\"]", "", "-".join(words))).strip("_.-")
    return slug[:_MAX_SLUG_LENGTH].strip("_.-") or "run"


def _is_plumbing(text: str) -> bool:
    if text.startswith(_ENV):
        return is_secret_name(text.removeprefix(_ENV).partition("=")[0])
    return text.startswith(("run.", "sweep.", "action=", "hydra.", "hydra/", "explain.", "base_output_directory="))


def unique_suffix() -> str:
    """Eight random hexadecimal digits: two starts in the same second differ."""
    return secrets.token_hex(4)


def default_run_dir(overrides: Sequence[str], now: datetime) -> Path:
    """A fresh folder under `outputs/`, named by time, overrides and a random suffix."""
    return Path("outputs") / f"{now:%Y-%m-%d_%H-%M-%S}-{make_slug(overrides)}-{unique_suffix()}"


def default_sweep_dir(now: datetime) -> Path:
    """A fresh folder under `outputs/` for all points of one sweep."""
    return Path("outputs") / f"sweep-{now:%Y-%m-%d_%H-%M-%S}-{unique_suffix()}"


def sweep_point_dir(sweep_dir: Path, number: int, overrides: Sequence[str]) -> Path:
    """The folder of one point of a sweep: its number, what differs, and a hash of the overrides.

    However a value is quoted or spelt, the folder is the same.
    """
    spelt = [_spell(text) for text in overrides]
    digest = hashlib.sha256("\0".join(spelt).encode()).hexdigest()[:8]
    return sweep_dir / f"{number:04d}-{make_slug(spelt)}-{digest}"


def _spell(text: str) -> str:
    """An override in the one spelling that says what Hydra reads from it; what Hydra cannot read stays as it is."""
    override = try_parse(text)
    if override is None or override.is_delete() or override.is_sweep_override():
        return text
    return f"{override.get_key_element()}={write_value(override.value())}"


def repeat_dir(point_dir: Path, repeat: int) -> Path:
    """The folder of a further run of a point; the first one, 1, has the point's own."""
    return point_dir.with_name(f"{point_dir.name}-repeat{repeat}") if repeat > 1 else point_dir


def default_run_name(run_dir: Path) -> str:
    """MaxText's `run_name` for a run folder: the same folder resumes the same run, another never meets it.

    Args:
        run_dir: absolute path; its hash keeps folders of the same name apart in a shared output directory.
    """
    digest = hashlib.sha256(os.fsencode(run_dir)).hexdigest()[:8]
    return f"{run_dir.name[:_MAX_SLUG_LENGTH]}-{digest}"
