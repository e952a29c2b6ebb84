"""Figures as people read them."""

import pytest

from primus_hydra.report.digits import choose_decimals, format_number, format_range


@pytest.mark.parametrize(
    ("value", "text"),
    [(31017.6, "31,018"), (999.96, "1,000.0"), (91.143, "91.14"), (1.0, "1.000"), (0.00012345, "0.0001234"), (0, "0")],
)
def test_a_figure_has_four_digits_that_matter(value: float, text: str) -> None:
    assert format_number(value) == text


def test_a_column_has_the_decimals_of_its_largest_figure() -> None:
    values = [98.0, None, 159.04, 0.5]
    assert choose_decimals(values) == 1
    assert [format_number(value, 1) for value in values if value is not None] == ["98.0", "159.0", "0.5"]


def test_no_figures_need_no_decimals() -> None:
    assert choose_decimals([]) == choose_decimals([None, 0.0]) == 0


def test_both_ends_of_a_range_have_the_same_decimals() -> None:
    assert format_range(9.5, 10.25) == "9.50 to 10.25"
    assert format_range(30870.2, 31117.0) == "30,870 to 31,117"


def test_losses_below_zero_keep_their_sign() -> None:
    assert format_number(-2.5) == "-2.500"
