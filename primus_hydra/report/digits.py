"""Figures as people read them: four digits that matter, thousands apart, and one number of decimals for a column."""

import math
from collections.abc import Iterable

_DIGITS = 4


def choose_decimals(values: Iterable[float | None]) -> int:
    """Decimals that show the largest of some figures with four digits; None is skipped."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if not largest:
        return 0
    return min(max(_DIGITS - 1 - math.floor(math.log10(largest)), 0), 12)


def format_count(number: int, noun: str) -> str:
    """`1 point`, `3 points`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_number(value: float, decimals: int | None = None) -> str:
    """`31,018`, `0.9051`; without `decimals` as many as this figure needs by itself."""
    return f"{value:,.{choose_decimals([value]) if decimals is None else decimals}f}"


def format_range(low: float, high: float, decimals: int | None = None) -> str:
    """`30,870 to 31,117`."""
    decimals = choose_decimals([low, high]) if decimals is None else decimals
    return f"{format_number(low, decimals)} to {format_number(high, decimals)}"
