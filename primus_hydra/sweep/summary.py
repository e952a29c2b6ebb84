"""What a person is told about a sweep before its first run and after its last."""

import shlex
import sys
from collections.abc import Sequence

from primus_hydra.actions import show
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
        show(session.console, plan_table(standings, differences))
        return
    for standing in standings:
        if not standing.starts or standing.reason:
            name = f"{standing.run.number} {differences[standing.run.number]}"
            tell(f"{name}: {standing.verdict}: {standing.reason}".removesuffix(": "))


def show_results(session: Session) -> None:
    """The ranking, the files with it, and what to type next."""
    # Imported here: a sweep that is refused needs no report.
    from primus_hydra.report.best import write_best
    from primus_hydra.report.files import write_all
    from primus_hydra.report.plain_text import make_plain
    from primus_hydra.report.read import read_report
    from primus_hydra.report.sweep_table import sweep_table

    if session.folder is None or session.settings is None:
        return
    folder, objective = session.folder, ranking_objective(session.settings.sweep)
    direction = "maximize" if objective.maximize else "minimize"
    report = read_report([folder], objective=objective.name, direction=direction)
    show(session.console, sweep_table(report))
    best, problems = write_best(report, folder)
    for problem in [*write_all(report, folder), *problems]:
        tell(make_plain(problem), file=sys.stderr)
    if best:
        tell(make_plain(best))
    tell(
        f"Sweep folder: {folder}\nReport, also while it runs: python -m primus_hydra.report {shlex.quote(str(folder))}"
    )
    if any(standing.starts and not is_settled(standing.run.folder) for standing in session.standings):
        tell(f"Run what is missing: {resume_command(folder)}")
