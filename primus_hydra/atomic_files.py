"""Files that are written whole or not at all, whenever the program or the machine stops."""

import json
import math
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def format_json(data: Mapping[str, Any]) -> str:
    """Strict JSON. It has no NaN or infinity: such numbers become null."""
    return json.dumps(_without_non_finite(data), indent=2, allow_nan=False) + "\n"


def write_json_atomic(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all, see `format_json`."""
    write_atomic(path, format_json(data))


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: temporary name in the same folder, fsync, rename, fsync of the folder."""
    write_in_order([(path, content)], staging=path.parent)


def write_in_order(files: Sequence[tuple[Path, str | bytes]], *, staging: Path) -> None:
    """Replace files one after the other, each whole; where there is no room for all of them, none is touched.

    A kill in between leaves the first ones replaced, so a file may be listed twice: its first text says that the
    others are being replaced, its last that they are.

    Args:
        files: file and its content. Missing folders of theirs are made on the way.
        staging: an existing folder of the same file system; after a kill, `list_half_written` names what is left there.

    Raises:
        OSError: nothing was replaced, unless a rename itself failed.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, content in files:
            staged.append((staging / f".{path.name}.{secrets.token_hex(4)}.tmp", path))
            with staged[-1][0].open("xb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
        for temporary, path in staged:
            path.parent.mkdir(exist_ok=True)
            temporary.replace(path)
    except BaseException:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path, _ in files}:
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def list_half_written(folder: Path) -> Iterator[Path]:
    """What a writer that was killed left in a folder; a file of this kind may also be about to be written."""
    return (path for path in folder.iterdir() if _TEMPORARY.fullmatch(path.name))


def _without_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(item) for item in value]
    return value
