"""Find the few lines of a log that say what went wrong."""

import re
from collections.abc import Iterable, Sequence

from primus_hydra.log_lines import ERROR, Line

MAX_CHARACTERS = 300
_MAX_LINES = 8
_BLOCK_LINES = 6
_LAST_LINES = 3
_MARKS = ("PRIMUS_HYDRA DIFFERENCE", "PRIMUS_HYDRA PLATFORM", "MAXTEXT CONFIG ERROR:")
_TRACEBACK = "Traceback (most recent call last):"
_PREFIX = re.compile(r"[DIWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+\] ")
_NOISE = re.compile(r"^(\s*$|[-=]{10,}$|For simplicity, JAX has removed|\s*File \"|\s*\^+\s*$|\s*~*\^+~*\s*$)")
_KEY_LIST = re.compile(r"('[^']+' not in ')[^']+'(?:, '[^']+'){9,}.*")


def find_error_lines(tail: Sequence[Line]) -> tuple[str, ...]:
    """The block that our child or MaxText's config loader printed, the last exception, the last error lines.

    Where nothing looks like an error: the last lines that report no step. At most 8 lines of at most 300 characters.
    """
    texts = [line.text for line in tail]
    found = [*_marked_block(texts), find_exception(tail)]
    found += [line.text for line in tail if line.level >= ERROR and _PREFIX.match(line.text)][-_LAST_LINES:]
    found = [text for text in found if not _NOISE.match(_PREFIX.sub("", text))]
    if not found:
        found = [line.text for line in tail if not (line.is_step or _NOISE.match(line.text))][-_LAST_LINES:]
    return tuple(_distinct(shorten(text) for text in found))[:_MAX_LINES]


def find_exception(tail: Sequence[Line]) -> str:
    """The last line of the last traceback, such as `ValueError: ...`, shortened; empty if there is none."""
    texts = [line.text for line in tail]
    starts = [index for index, text in enumerate(texts) if text.lstrip().endswith(_TRACEBACK)]
    if not starts:
        return ""
    for text in texts[starts[-1] + 1 :]:
        if text and not text[0].isspace() and not _NOISE.match(text):
            return shorten(text)
    return ""


def shorten(text: str) -> str:
    """Cut a line to a readable length; MaxText's list of all its ~860 keys goes first."""
    text = _KEY_LIST.sub(r"\1...' (MaxText lists all of its keys here)", text.strip())
    if len(text) <= MAX_CHARACTERS:
        return text
    note = f" ... ({len(text):,} characters, see train.log)"
    return text[: MAX_CHARACTERS - len(note)] + note


def _marked_block(texts: Sequence[str]) -> list[str]:
    """From the last line that carries one of the marks: it, and what is indented below it."""
    starts = [index for index, text in enumerate(texts) if any(mark in text for mark in _MARKS)]
    if not starts:
        return []
    block = [texts[starts[-1]]]
    for text in texts[starts[-1] + 1 :][:_BLOCK_LINES]:
        if not text.startswith("  ") or _NOISE.match(text):
            break
        block.append(text)
    return block


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
