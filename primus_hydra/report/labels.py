"""Short names for the points of a report: what differs inside of each sweep, and the sweep where there are several."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from primus_hydra.report.model import Row
from primus_hydra.report.plain_text import make_plain

DEFAULT = "default"
"""Value of a swept key for a point that does not set it and whose configuration does not tell it."""
UNKNOWN = "not known"
"""Value of a key for a point whose files do not tell its configuration."""
_MAX_LABEL = 60
_DIGITS = 4
_PLAIN_VALUE = re.compile(r"""=(?:(?P<quote>['"])(?P<word>[\w.+-]*)(?P=quote))?(?=\s|$)""")

Values = Mapping[str, str]
"""Swept key -> a point's value as text; all points of a report have the same keys."""


def show_overrides(text: str) -> str:
    """Overrides as people read them: a word or a number without quotes, and `""` for an empty text."""
    return _PLAIN_VALUE.sub(lambda found: f"={found['word'] or '""'}", text)


def make_labels(rows: Sequence[Row], values: Sequence[Values]) -> list[str]:
    """A name for every row, unique in the report.

    A point whose configuration is not known is called by its folder, and so is one that differs in nothing else.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[row.sweep].append(index)
    labels = [""] * len(rows)
    for sweep, indices in groups.items():
        names = _cut([make_plain(name) for name in _name_points(rows, values, indices, is_alone=len(groups) == 1)])
        for index, name in zip(indices, names, strict=True):
            labels[index] = name if len(groups) == 1 else _prefix(make_plain(sweep), name)
    count = Counter(labels)
    return [f"{label} (#{number})" if count[label] > 1 else label for number, label in enumerate(labels, start=1)]


def _name_points(rows: Sequence[Row], values: Sequence[Values], indices: Sequence[int], *, is_alone: bool) -> list[str]:
    """Names of one sweep's points inside of it; empty where its only point needs no other name than the sweep's."""
    known = [values[index] for index in indices if UNKNOWN not in values[index].values()]
    shown = {key: _round_values({each[key] for each in known}) for key in (known[0] if known else ())}
    varying = [key for key, texts in shown.items() if len(texts) > 1]
    names = []
    for index in indices:
        row, own = rows[index], values[index]
        keys = [] if UNKNOWN in own.values() else varying
        name = " · ".join(_describe(key, shown[key][own[key]]) for key in keys)
        needs_none = not is_alone and own in known and len(indices) == 1
        names.append(name or ("" if needs_none else (is_alone and row.differs) or row.point))
    return names


def _describe(key: str, value: str) -> str:
    """Values say enough where they are words; a number, an empty text or a switch needs its key."""
    return value if _speaks(value) else f"{key.rpartition('.')[2]}={value or '""'}"


def _speaks(value: str) -> bool:
    return value.lower() not in {"", "true", "false", "null", "none", DEFAULT} and _read_number(value) is None


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _round_values(texts: set[str]) -> Mapping[str, str]:
    """Value -> how it is shown: with four digits, unless two of them would then look the same."""
    rounded = {text: _round(text) for text in texts}
    return rounded if len(set(rounded.values())) == len(texts) else {text: text for text in texts}


def _round(text: str) -> str:
    number = _read_number(text)
    if number is None or text.lstrip("+-").isdecimal():
        return text
    return min(text, f"{number:.{_DIGITS}g}", key=len)


def _cut(names: Sequence[str]) -> list[str]:
    """Long names without their ends, or without their beginnings where that is what differs."""
    front = [name if len(name) <= _MAX_LABEL else f"{name[: _MAX_LABEL - 1]}…" for name in names]
    back = [name if len(name) <= _MAX_LABEL else f"…{name[1 - _MAX_LABEL :]}" for name in names]
    count = Counter(front)
    return [end if count[start] > 1 else start for start, end in zip(front, back, strict=True)]


def _prefix(sweep: str, name: str) -> str:
    """Foreign runs are often named after the folder that was given."""
    if not name:
        return sweep
    return name if name == sweep or name.startswith(f"{sweep}/") else f"{sweep}: {name}"
