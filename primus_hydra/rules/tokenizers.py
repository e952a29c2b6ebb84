"""How many ids a tokenizer can produce, read from its file without importing a tokenizer library."""

import json
from functools import cache
from pathlib import Path

from primus_hydra.rules.paths import exists, expand_user

_TIKTOKEN_RESERVED = 256
"""Special tokens that MaxText adds to a tiktoken vocabulary (input_pipeline/tokenizer.py)."""
_LENGTH_DELIMITED = 2
_PIECE_TAG = 1 << 3 | _LENGTH_DELIMITED
"""Tag of field 1 of SentencePiece's ModelProto: one piece each (sentencepiece_model.proto)."""


def find_tokenizer(path: str, package: Path) -> Path | None:
    """File or folder that MaxText will open for a `tokenizer_path`; None if it is not on this machine.

    A name that does not exist is looked up among the tokenizers that MaxText ships, as its types.py does.

    Args:
        path: the key's value.
        package: folder of the `maxtext` package.
    """
    if not path or "://" in path:
        return None
    shipped = package / "assets" / "tokenizers"
    candidates = (expand_user(path), shipped / Path(path).name, shipped / path)
    return next((candidate for candidate in candidates if exists(candidate)), None)


@cache
def read_vocabulary_size(path: Path) -> int | None:
    """Highest token id plus one; None for a format that is not known.

    Args:
        path: a Hugging Face folder with a tokenizer.json, a .tiktoken file, or a SentencePiece model.
    """
    try:
        if path.is_dir():
            return _read_hugging_face(path / "tokenizer.json")
        data = path.read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if path.suffix == ".tiktoken":
        return len(data.splitlines()) + _TIKTOKEN_RESERVED
    return _count_pieces(data)


def _read_hugging_face(path: Path) -> int:
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    return max((*ids, *(token["id"] for token in tokenizer.get("added_tokens", []))), default=-1) + 1


def _count_pieces(data: bytes) -> int | None:
    """Count the pieces of a serialised ModelProto by walking its length-delimited fields."""
    position, pieces, end = 0, 0, len(data)
    while position < end:
        if data[position] == _PIECE_TAG and position + 1 < end and data[position + 1] < 128:
            position += 2 + data[position + 1]  # almost every piece is this short, and there are 262,144 of them
            pieces += 1
            continue
        tag, position = _read_varint(data, position)
        length, position = _read_varint(data, position)
        if tag is None or tag & 7 != _LENGTH_DELIMITED or length is None:
            return None
        pieces += tag == _PIECE_TAG
        position += length
    return pieces if pieces and position == end else None


def _read_varint(data: bytes, position: int) -> tuple[int | None, int]:
    value = 0
    for shift, byte in zip(range(0, 64, 7), data[position : position + 10], strict=False):
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return None, position
