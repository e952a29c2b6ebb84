"""The table of a report, and the sentences above it."""

import io

import pytest
from rich.console import Console

from primus_hydra.objective import OBJECTIVES
from primus_hydra.report.model import Report
from primus_hydra.report.ranking import describe_ranking
from primus_hydra.report.sweep_table import sweep_table
from tests.report_runs import make_report, make_run


def draw(report: Report, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(sweep_table(report))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("counts", "text"), [((5, 5), "median of 5 steps"), ((1,), "median of 1 step "), ((5, 9), "median of 5 to 9 steps")]
)
def test_the_basis_of_the_ranking_is_said(counts: tuple[int, ...], text: str) -> None:
    report = make_report(*(make_run(str(index), num_steps_measured=count) for index, count in enumerate(counts)))
    assert text in describe_ranking(report)


def test_a_ranking_of_single_runs_says_all_that_it_rests_on() -> None:
    assert describe_ranking(make_report(make_run("a"), make_run("b", 10))) == (
        "2 points; best: a. Ranked by tokens/s/device (most first) from the median of 5 steps after 3 warm-up steps. "
        "A tie: overlap of the middle halves of the steps. "
        "One run each: drift between runs is not covered; sweep.repeats=3 shows it."
    )


def test_drift_between_runs_is_no_matter_where_there_are_repeats_or_nothing_to_compare() -> None:
    assert "One run each" not in describe_ranking(make_report(make_run("a")))
    assert "One run each" not in describe_ranking(make_report(make_run("a"), make_run("b", state="failed")))
    assert "One run each" not in describe_ranking(make_report(make_run("a"), make_run("b"), make_run("b", repeat=2)))


def test_repeats_are_said_with_what_counts_as_a_tie() -> None:
    text = describe_ranking(make_report(make_run("a"), make_run("a", repeat=2), make_run("b", 10)))
    assert text.startswith("2 points in 3 runs; best: a.")
    assert "the median over 1 to 2 repeats. A tie: overlap of the middle halves of the steps of a single run or" in text
    assert "the values of the repeats, lowest to highest." in text


def test_a_tie_and_a_report_without_a_score_are_said() -> None:
    tie = describe_ranking(make_report(*(make_run(name) for name in "abcde")))
    assert "5 share the first rank and cannot be told apart: a, b, c and 2 more." in tie
    assert describe_ranking(make_report(make_run("a", state="failed"))) == "1 point, none with a score."


def test_another_objective_is_said_with_its_direction_and_losses_of_unequal_length_do_not_compare() -> None:
    runs = [make_run("a", final_loss=3.0), make_run("b", last_step=19)]
    text = describe_ranking(make_report(*runs, objective=OBJECTIVES["final_loss"]))
    assert "Ranked by final loss (least first). A tie: equal values." in text
    assert "Their last steps differ (7 to 19), so the losses do not compare." in text


def test_different_platforms_are_said_once_they_are_ranked() -> None:
    ranked = make_report(make_run("a"), make_run("b", platform="cpu"))
    failed = make_report(make_run("a"), make_run("b", platform="cpu", state="failed"))
    assert "They ran on different platforms (gpu; cpu)." in describe_ranking(ranked)
    assert "different platforms" not in describe_ranking(failed)


def test_a_ranking_with_foreign_runs_says_what_cannot_be_known() -> None:
    assert "nothing proves that they ended well" in describe_ranking(make_report(make_run("a", state="foreign")))


def repeated_report() -> Report:
    """A report with repeats, long names, a tie, a failure and a reason: the widest that there is."""
    names = [f"remat_policy={policy} per_device_batch_size=4" for policy in ("full", "minimal", "save_dot_except_mlp")]
    runs = [
        make_run(name, 31018 - 9000 * n - repeat, repeat=repeat) for n, name in enumerate(names) for repeat in (1, 2)
    ]
    return make_report(*runs, make_run("x", None, state="failed", failure="out_of_memory", reason="No room."))


@pytest.mark.parametrize("width", [40, 60, 80, 110, 160, 240])
def test_nothing_is_cut_at_any_width(width: int) -> None:
    report = repeated_report()
    shown = draw(report, width)
    assert max(map(len, shown.splitlines())) <= width
    prose = shown.partition("┏")[0]
    assert "".join(prose.split()) == "".join(describe_ranking(report).split())
    framed = [line for line in shown.splitlines() if line[:1] in "┏┃┡│└"]
    assert {line[-1] for line in framed} <= set("┓┃┩│┘")
    assert len({len(line) for line in framed}) == 1
    for text in ("rank", "tok/s/dev", "state", "31,016", "22,016", "13,016", "completed", "memory", "x: No room."):
        assert text in shown
    cells = ["".join(line.strip("│").split("│")[1].split()) for line in framed if line.startswith("│")]
    assert "".join("".join(row.differs.split()) for row in report.rows) == "".join(cells)


@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_columns_without_room_are_named_and_come_with_the_width(width: int) -> None:
    shown = draw(repeated_report(), width)
    header = flat(shown.partition("┏")[2].partition("┡")[0])
    titles = {"repeats": 80, "vs best": 80, "step time": 110, "device memory": 160}
    for title, needed in titles.items():
        there = all(word in header for word in title.split())
        assert there == (width >= needed), title
        assert there or title in flat(shown.rpartition("A wider terminal shows more: ")[2])


def test_every_point_has_its_share_of_the_best() -> None:
    runs = [make_run("a", 1000), make_run("b", 930)]
    assert "0.93x" in draw(make_report(*runs), 120)
    slow = {"median": 1.5, "p25": 1.5, "p75": 1.5}
    times = make_report(make_run("a"), make_run("b", step_time_s=slow), objective=OBJECTIVES["step_time_s"])
    assert "1.50x" in draw(times, 120)
    assert "vs best" not in draw(make_report(make_run("a", state="failed")), 120)


def test_repeats_have_a_column_and_their_range_where_there_is_room() -> None:
    runs = [
        make_run("a", 1000),
        make_run("a", 1100, repeat=2),
        make_run("b", 10, state="failed"),
        make_run("b", 9, repeat=2),
    ]
    narrow, wide = draw(make_report(*runs), 90), draw(make_report(*runs), 160)
    assert "repeats" in narrow
    assert "1 of 2" in narrow
    assert "1,000 to 1,100" in flat(wide)
    assert "repeats" not in draw(make_report(make_run("a")), 160)


def test_the_objective_has_a_column_of_its_own_and_several_sweeps_too() -> None:
    shown = flat(draw(make_report(make_run("a"), objective=OBJECTIVES["compile_time_s"]), 120))
    assert "compile time, s" in shown
    assert "│ 12 │" in shown
    assert "sweep" in draw(make_report(make_run("a"), make_run("a", sweep="two")), 120)


@pytest.mark.parametrize("width", [80, 130])
def test_a_name_with_markup_is_printed_as_it_is(width: int) -> None:
    shown = draw(make_report(make_run("[bold]x[/nothing]", None, state="failed", reason="[/red] y")), width)
    assert shown.count("[bold]x[/nothing]") == 2
    assert "[/red] y" in shown


@pytest.mark.parametrize("width", [80, 130])
def test_nothing_that_steers_a_terminal_reaches_it(width: int) -> None:
    evil = "a\x1b[2J\x1b]0;title\x07\r\nb\u202ec\x9bd"
    shown = draw(
        make_report(make_run(evil, sweep=evil), make_run("b", state="failed", failure=evil, reason=evil)), width
    )
    assert {letter for letter in shown if not letter.isprintable()} == {"\n"}
    assert "a\\x1b[2J" in shown
