"""primus_hydra.parent: what the program that started a worker says, and that it is gone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from primus_hydra.parent import ParentLink, StopOrder


@pytest.fixture
def pipe() -> Iterator[tuple[ParentLink, int]]:
    """A link and the parent's end."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb"):
        yield ParentLink(reading), writing


def test_an_order_may_come_in_pieces(pipe: tuple[ParentLink, int]) -> None:
    link, writing = pipe
    os.write(writing, b'{"stop": "slow", "rea')
    link.read()
    assert not link.order
    os.write(writing, b'son": "too slow"}\n')
    link.read()
    assert (link.order, link.gone) == (StopOrder(word="slow", reason="too slow"), False)


def test_the_first_order_counts(pipe: tuple[ParentLink, int]) -> None:
    link, writing = pipe
    os.write(writing, b'{"stop": "slow", "reason": "a"}\n{"stop": "rung", "reason": "b"}\n')
    link.read()
    assert link.order == StopOrder(word="slow", reason="a")


@pytest.mark.parametrize("line", [b"stop", b"[]", b"{}", b'{"stop": 1, "reason": "x"}', b'{"stop": "slow"}', b"\xff"])
def test_a_line_that_is_no_order_orders_nothing(pipe: tuple[ParentLink, int], line: bytes) -> None:
    link, writing = pipe
    os.write(writing, line + b"\n")
    link.read()
    assert (link.order, link.gone) == (None, False)


def test_a_closed_pipe_means_that_the_parent_is_gone() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        link = ParentLink(reading)
        os.close(writing)
        link.read()
        assert (link.order, link.gone) == (None, True)


def test_a_file_cannot_tell_of_its_other_end(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (tmp_path / "file").open() as stream, pytest.raises(ValueError, match="neither a pipe nor a socket"):
        ParentLink(stream.fileno())
