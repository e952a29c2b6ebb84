"""Levels of log lines, and what passes to train.log and the console."""

import contextlib
from pathlib import Path

import pytest

from primus_hydra.log_lines import DEBUG, ERROR, INFO, WARNING, Line, LogPump, level_of


class Sinks:
    """A pump with everything that came out of it."""

    def __init__(self, path: Path, *, secrets: tuple[str, ...] = (), file_level: int = DEBUG) -> None:
        self.path = path
        self.said: list[str] = []
        self.lines: list[Line] = []
        self.pump = LogPump(
            path,
            file_level=file_level,
            console_level=INFO,
            secrets=secrets,
            say=self.said.append,
            read=self.lines.append,
        )

    def log(self) -> str:
        return self.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("I1201 04:05:47.905265 140040413186944 train.py:1] x", INFO),
        ("W1201 04:05:47.905265 140040413186944 train.py:1] x", WARNING),
        ("E0000 00:00:1733029547.905265 1234 pjrt.cc:1] x", INFO),
        ("E1201 04:05:47.905265    1234 pjrt.cc:1] x", ERROR),
        ("2026-12-01 04:05:47.905265: W external/xla/x.cc:1] x", WARNING),
        ("ERROR:absl:x", ERROR),
        ("Traceback (most recent call last):", ERROR),
        ("MAXTEXT CONFIG ERROR: x", ERROR),
        ("PRIMUS_HYDRA DIFFERENCE", ERROR),
    ],
)
def test_levels_are_read_from_the_prefix(text: str, level: int) -> None:
    assert level_of(text, INFO) == level


def test_a_line_without_a_prefix_has_the_level_of_the_one_before() -> None:
    assert level_of("    run()", ERROR) == ERROR


def test_a_line_that_comes_in_pieces_is_one_line(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log")
    with contextlib.closing(sinks.pump) as pump:
        for piece in (b"hel", b"lo\nwor", b"ld"):
            pump.feed(piece)
    assert [line.text for line in sinks.lines] == ["hello", "world"]
    assert sinks.log() == "hello\nworld"


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_secret_is_masked_wherever_the_output_is_cut(tmp_path: Path, cut: int) -> None:
    data = b"before the-long-secret-value after, and hf_" + b"A1b2C3d4" * 4 + b" too\n"
    sinks = Sinks(tmp_path / "log", secrets=("the-long-secret-value",))
    with contextlib.closing(sinks.pump) as pump:
        pump.feed(data[:cut])
        pump.feed(data[cut:])
    assert sinks.log() == "before <hidden> after, and <hidden> too\n"
    assert sinks.said == ["before <hidden> after, and <hidden> too"]


def test_what_a_line_means_is_read_before_a_secret_is_masked(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log", secrets=("completed",))
    with contextlib.closing(sinks.pump) as pump:
        pump.feed(b"completed step: 3, seconds: 1\r\nand completed\n")
    assert [line.is_step for line in sinks.lines] == [True, False]
    assert sinks.said == ["and <hidden>"]
    assert [line.text for line in sinks.pump.tail] == ["<hidden> step: 3, seconds: 1", "and <hidden>"]
    assert sinks.path.read_bytes() == b"<hidden> step: 3, seconds: 1\r\nand <hidden>\n"


def test_a_secret_in_a_line_without_end_is_masked(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log", secrets=("the-long-secret-value",))
    with contextlib.closing(sinks.pump) as pump:
        for _ in range(100_000):
            pump.feed(b"padding the-long-secret-value")
    log = sinks.log()
    assert "secret" not in log
    assert log.replace("<hidden>", "").count("padding ") == 100_000


def test_the_configuration_dump_is_debug_and_does_not_hide_what_follows(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log", file_level=INFO)
    with contextlib.closing(sinks.pump) as pump:
        pump.feed(b"I1201 04:05:47.905265 1 pyconfig.py:1] Config param steps: 3\nfollows\n")
    assert sinks.said == ["follows"]
    assert sinks.log() == "follows\n"
    assert [line.level for line in sinks.lines] == [DEBUG, INFO]


def test_the_console_shows_what_a_terminal_would_leave_standing(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log")
    with contextlib.closing(sinks.pump) as pump:
        pump.feed(b"10%\r20%\r\x1b[31m30%\x1b[0m\x00\n")
    assert sinks.said == ["30%"]


def test_a_line_without_end_is_shown_once(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log")
    with contextlib.closing(sinks.pump) as pump:
        for _ in range(100):
            pump.feed(b"x" * (1 << 16))
        pump.feed(b"\nnext\n")
    assert len(sinks.said) == 2
    assert sinks.said[1] == "next"
    assert sinks.log() == "x" * (100 << 16) + "\nnext\n"


def test_the_tail_is_bounded(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path / "log")
    with contextlib.closing(sinks.pump) as pump:
        pump.feed(b"x" * 900_000 + b"\n" + b"y\n" * 10_000)
    assert len(pump.tail) == 400
    assert sum(len(line.text) for line in pump.tail) < 40_000
