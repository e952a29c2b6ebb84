"""What differs between points, in as few words as possible."""

from collections import Counter
from collections.abc import Sequence

_TITLE = "what differs"
_JOINT = " · "


def describe_differences(overrides: Sequence[Sequence[str]]) -> list[str]:
    """For each point the overrides that not all points share, as one text; empty where nothing differs."""
    count = Counter(text for texts in overrides for text in set(texts))
    return [" ".join(text for text in texts if count[text] < len(overrides)) for texts in overrides]


def shorten(texts: Sequence[str]) -> tuple[str, list[str]]:
    """A column's title and its entries: values under the keys, where every point has the same keys.

    Args:
        texts: for each point its differing overrides, `remat_policy=full quantization=int8`.

    Returns:
        Where every point sets the same names in the same order, the names as the title and the values as entries;
        otherwise the texts as they are.
    """
    pairs = [[part.partition("=") for part in text.split(" ")] for text in texts]
    names = [tuple(name for name, _, _ in parts) for parts in pairs]
    if len(set(names)) != 1 or len(names) < 2 or not all(equals for parts in pairs for _, equals, _ in parts):
        return _TITLE, list(texts)
    return _JOINT.join(names[0]), [_JOINT.join(value or '""' for _, _, value in parts) for parts in pairs]
