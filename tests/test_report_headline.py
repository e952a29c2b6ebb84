"""What a report says first."""

from primus_hydra.objective import OBJECTIVES, Objective
from primus_hydra.report.headline import Headline, write_headline
from primus_hydra.report.model import Run
from primus_hydra.report.points import read_points
from tests.report_runs import TOKENS, make_report, make_run


def _headline(*runs: Run, objective: Objective = TOKENS) -> Headline:
    report = make_report(*runs, objective=objective)
    return write_headline(report, read_points(report))


def test_the_winner_is_named_with_its_figure_its_lead_and_its_command() -> None:
    headline = _headline(make_run("a", 1100, command="run a"), make_run("b", 1000), make_run("c", state="invalid"))
    assert (headline.title, headline.figure, headline.unit) == ("a", "1,100", "tokens/s/device")
    assert headline.sentences == ("That is 10.0% more than the next, b.", "3 points: 2 completed, 1 invalid.")
    assert headline.command == "run a"
    assert headline.basis.startswith("Ranked by tokens/s/device")


def test_less_is_better_is_said_as_less() -> None:
    runs = [make_run(name, final_loss=loss) for name, loss in (("a", 1.5), ("b", 2.0))]
    assert _headline(*runs, objective=OBJECTIVES["final_loss"]).sentences[0] == "That is 25.0% less than the next, b."


def test_points_that_share_the_first_place_are_told_and_none_is_called_the_best() -> None:
    headline = _headline(make_run("a", 1000, spread=0.1), make_run("b", 990, spread=0.1), make_run("c", 500))
    assert headline.title == "2 points share the first place"
    assert (headline.ties, headline.figure, headline.command) == (("a", "b"), "", "")
    assert "cannot tell which is the best" in headline.sentences[0]


def test_many_ties_are_counted() -> None:
    assert _headline(*(make_run(f"r{n}", 1000) for n in range(20))).ties[-1] == "and 12 more"


def test_without_a_score_it_says_so() -> None:
    headline = _headline(make_run("a", state="failed", failure="crash"))
    assert (headline.title, headline.basis, headline.sentences) == ("No point has a score", "", ("1 point: 1 failed.",))
    assert _headline().title == "No point has a score"


def test_the_only_point_with_a_score_has_no_lead() -> None:
    assert _headline(make_run("a"), make_run("b", state="timed_out")).sentences == (
        "2 points: 1 completed, 1 timed out.",
    )


def test_a_sweep_that_still_runs_is_not_final() -> None:
    headline = _headline(
        make_run("a"), make_run("b", state="running", result={}), make_run("c", state="planned", result={})
    )
    assert headline.sentences[-1].endswith("The ranking is not final: 2 are still to come.")
