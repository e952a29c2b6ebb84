"""What a person is told about a sweep before its first run and after its last."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from primus_hydra.own_command import own_command
from primus_hydra.progress import Voice
from primus_hydra.schema import Action, SweepSettings
from primus_hydra.sweep.execute import name_run
from primus_hydra.sweep.halving import ranking_objective
from primus_hydra.sweep.judge import Standing, plan_table
from primus_hydra.sweep.outcomes import is_settled
from primus_hydra.sweep.resume import resume_command
from primus_hydra.sweep.session import Session
from primus_hydra.tell import tell


def tell_plan(session: Session, standings: Sequence[Standing], *, as_table: bool) -> None:
    """What happens to each point; of a later batch of trials only what does not simply run."""
    differences = session.describe_points()
    if as_table:
        action = session.settings.action if session.settings is not None else Action.train
        Voice(session.console).show(plan_table(standings, differences, action))
        return
    for standing in standings:
        if not standing.starts or standing.reason:
            tell(f"{name_run(standing.run, differences)}: {standing.verdict}: {standing.reason}".removesuffix(": "))


def tell_exported(folders: Sequence[Path]) -> None:
    """Where exported points lie, and what to type next.

    Args:
        folders: run folders, at least one.
    """
    sweep = folders[0].parent
    tell(
        f"Sweep folder: {sweep}\n"
        f"Run one of its points: {own_command('primus_hydra.worker', str(folders[0]))}\n"
        f"Then compare what ran: {own_command('primus_hydra.report', str(sweep))}"
    )


def show_results(session: Session) -> None:
    """The ranking, the files with it, and what to type next."""
    if session.folder is None or session.settings is None:
        return
    show_ranking(session.folder, session.settings.sweep, session.console)
    if any(standing.starts and not is_settled(standing.run.folder) for standing in session.standings):
        tell(f"Run what is missing: {resume_command(session.folder)}")


def show_ranking(folder: Path, settings: SweepSettings, console: Console) -> None:
    """How the points in a sweep's folder rank; writes the results, the winner and the page there."""
    # Imported here: a sweep that is refused needs no report.
    from primus_hydra.report.plain_text import make_plain
    from primus_hydra.report.publish import publish
    from primus_hydra.report.read import read_report
    from primus_hydra.report.sweep_table import sweep_table

    objective = ranking_objective(settings)
    report = read_report([folder], objective=objective.name, direction=objective.direction)
    Voice(console).show(sweep_table(report))
    sentences, problems = publish(report, folder, page=True)
    for problem in problems:
        tell(make_plain(problem), file=sys.stderr)
    for sentence in sentences:
        tell(make_plain(sentence))
    report_again = own_command("primus_hydra.report", str(folder))
    tell(f"Sweep folder: {folder}\nReport, also while it runs: {report_again}")
