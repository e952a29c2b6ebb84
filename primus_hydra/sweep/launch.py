"""The body of our launcher: judge all points, show the plan, run what is missing, say what came of it."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from primus_hydra import worker
from primus_hydra.actions import perform_plan, warn
from primus_hydra.errors import ConfigError, Problem, distinct_problems, format_problems
from primus_hydra.objective import DEFAULT_OBJECTIVE
from primus_hydra.points import Plan, Point
from primus_hydra.runs import RunFolderError
from primus_hydra.schema import Action, OnInvalid
from primus_hydra.sweep.adopt import adopt_folders
from primus_hydra.sweep.execute import Execution, execute_standings, name_run
from primus_hydra.sweep.halving import Rule
from primus_hydra.sweep.hold import await_workers, remove_leftovers
from primus_hydra.sweep.job import Trials
from primus_hydra.sweep.judge import Standing, Verdict, judge_points
from primus_hydra.sweep.ladder import Ladder
from primus_hydra.sweep.outcomes import Outcome, read_outcome, sweep_exit_code
from primus_hydra.sweep.records import describe_write_error
from primus_hydra.sweep.refusals import check_sweep
from primus_hydra.sweep.repeats import repeat_points
from primus_hydra.sweep.resume import refuse_if_begun, write_sweep_record
from primus_hydra.sweep.session import Session
from primus_hydra.sweep.slots import Slot, make_slots
from primus_hydra.sweep.summary import show_results, tell_exported, tell_plan
from primus_hydra.tell import tell

__all__ = ["Outcome", "SweepEnded", "finish_sweep", "launch_points"]
_EXIT_INTERRUPTED = worker.EXIT_CODES["interrupted"]


class SweepEnded(SystemExit):
    """The sweep is over while Hydra would still go on; `code` is the program's exit code, and all is told already."""


_session = Session()


def launch_points(points: Sequence[Point], *, is_search: bool = False, num_trials: int | None = None) -> list[Outcome]:
    """Run the points to their end, whatever that is; one outcome per point, in their order.

    May be called several times in one process: a search launches one batch of trials after the other. The first call
    shows the plan as a table, later ones tell what does not simply run.

    Args:
        points: what was composed, refused ones too.
        is_search: whether a sweeper that needs results (Optuna) chose the points: a refused trial then ends nothing,
            not even if all points of this call are refused.
        num_trials: that such a sweeper makes in all; None where it does not tell.

    Raises:
        SweepEnded: nothing was started (a refusal: code 2), nothing is to be run (`action=check`, `export`,
            `explain`), or Ctrl-C, SIGTERM or `sweep.fail_fast` stopped the sweep. Everything is told already, the
            ranking too: `finish_sweep` is not to be called any more.
    """
    try:
        _session.is_search, _session.num_trials = is_search, num_trials
        return _launch(_session, adopt_folders(points), is_search=is_search)
    except (OSError, RunFolderError) as error:
        started = "Nothing more was started" if _session.standings else "Nothing was started"
        tell(f"{started}: {describe_write_error(error)}", file=sys.stderr)
        raise SweepEnded(_end(_session, worker.EXIT_NOT_STARTED)) from error
    except KeyboardInterrupt:
        if not _session.standings:
            raise
        _session.interrupted = True
        raise SweepEnded(_end(_session, 0)) from None


def hold_sweep(folder: Path) -> None:
    """Keep everybody else out of a sweep's folder before the first launch; a search keeps its study there.

    Raises:
        SweepEnded: the folder cannot be made, or another start works in it; that is told.
    """
    try:
        _session.hold(folder)
    except (OSError, RunFolderError) as error:
        tell(f"Nothing was started: {describe_write_error(error)}", file=sys.stderr)
        raise SweepEnded(worker.EXIT_NOT_STARTED) from error


def finish_sweep() -> int:
    """When Hydra has returned: show the ranking, write the results, say what to type next; returns the exit code.

    0 where `launch_points` was never called.
    """
    return _end(_session, 0)


def _launch(session: Session, points: Sequence[Point], *, is_search: bool) -> list[Outcome]:
    is_first = not session.points
    runs = repeat_points(points)
    plans = [run.plan for run in runs if run.plan is not None]
    session.points += points
    session.settings = session.settings or (plans[0].composition.settings if plans else None)
    trains = session.settings is not None and session.settings.action is Action.train
    problems = check_sweep(plans, is_search=is_search)
    slots = _make_slots(plans, problems) if plans and trains else []
    ladder = _open_folder(session, plans[0].folder.path.parent, runs) if slots and not problems else None
    standings = _judge(session, runs, ladder)
    tell_plan(session, standings, as_table=is_first)
    _refuse(session, standings, problems, is_first=is_first, is_search=is_search)
    if plans and not trains:
        raise SweepEnded(_perform(session, standings))
    if plans:
        _train(session, standings, slots, ladder)
    else:  # a search goes on
        session.record_refusals(standings)
        session.standings += standings
    objectives = session.settings.sweep.objective if session.settings else [DEFAULT_OBJECTIVE]
    return [
        read_outcome(point, [standing for standing in standings if standing.run.number == point.number], objectives)
        for point in points
    ]


def _make_slots(plans: Sequence[Plan], problems: list[Problem]) -> list[Slot]:
    settings = [plan.composition.settings for plan in plans]
    try:
        return make_slots([one.platform for one in settings], settings[0].sweep.max_parallel, os.environ)
    except ConfigError as error:
        problems += error.problems
        return []


def _open_folder(session: Session, folder: Path, runs: Sequence[Point]) -> Ladder | None:
    """Hold a folder that is there already, before anybody reads what its runs say; read what its rungs decided."""
    assert session.settings is not None
    if folder.exists():
        session.hold(folder)
        await_workers(runs)
        remove_leftovers(folder)
    if not session.settings.sweep.rungs:
        return None
    ladder = Ladder(folder, Rule.of(session.settings.sweep))
    ladder.check_names(run.folder.path.name for run in runs if run.plan is not None)
    return ladder


def _judge(session: Session, runs: Sequence[Point], ladder: Ladder | None) -> list[Standing]:
    standings = judge_points(runs, session.seen)
    dropped = ladder.dropped() if ladder else {}
    return [
        replace(standing, verdict=Verdict.SKIPPED, reason=dropped[standing.run.folder.path.name])
        if standing.starts and standing.run.folder.path.name in dropped
        else standing
        for standing in standings
    ]


def _refuse(
    session: Session,
    standings: Sequence[Standing],
    problems: Sequence[Problem],
    *,
    is_first: bool,
    is_search: bool,
) -> None:
    """Tell everything that is wrong; end the sweep where that concerns more than the points that are refused."""
    refused = [standing.run for standing in standings if standing.run.plan is None]
    plans = [standing.run.plan for standing in standings if standing.run.plan is not None]
    found = [*(problem for run in refused for problem in run.problems), *problems]
    if found:
        tell(format_problems(distinct_problems(found)), file=sys.stderr)
    warn(distinct_problems(problem for plan in plans for problem in plan.warnings))
    stops = session.settings is not None and session.settings.sweep.on_invalid is OnInvalid.stop
    is_wrong_anyway = is_first and any(problem.scope == "value" for problem in found)
    if problems or is_wrong_anyway or (refused and stops) or (is_first and not plans and not is_search):
        tell("Nothing more was started." if session.standings else "Nothing was started.", file=sys.stderr)
        raise SweepEnded(_end(session, worker.EXIT_NOT_STARTED))


def _perform(session: Session, standings: Sequence[Standing]) -> int:
    """Check, export or explain everything that could run; returns the exit code."""
    assert session.settings is not None
    differences, codes = session.describe_points(), [0]
    ready = [standing.run.plan for standing in standings if standing.starts and standing.run.plan is not None]
    for plan in ready:
        mark = "# " if session.settings.action is Action.explain else ""  # what is explained can be read as a file
        tell(f"{mark}Point {name_run(plan, differences)}")
        codes.append(perform_plan(plan))
    if ready and session.settings.action is Action.export:
        tell_exported([plan.folder.path for plan in ready])
    refused = any(standing.verdict is Verdict.INVALID for standing in standings)
    return max(codes) or (worker.EXIT_FAILED if refused else 0)


def _train(session: Session, standings: list[Standing], slots: Sequence[Slot], ladder: Ladder | None) -> None:
    """Write what has to be known whatever happens, then run.

    Raises:
        SweepEnded: interrupted, or ended by `sweep.fail_fast`.
    """
    assert session.settings is not None
    folder = next(standing.run.folder.path.parent for standing in standings if standing.run.plan is not None)
    if session.folder is None:
        session.hold(folder)
        refuse_if_begun(folder)
    write_sweep_record(folder)
    session.record_refusals(standings)
    execution = Execution(
        settings=session.settings.sweep,
        slots=slots,
        console=session.console,
        differences=session.describe_points(),
        completed=session.completed(standings),
        trials=_count_trials(session, standings),
    )
    try:
        execute_standings(execution, standings, ladder)
    finally:
        if execution.began or not any(standing.starts for standing in standings):
            session.standings += standings
    session.interrupted = execution.interrupted
    if not execution.goes_on:
        raise SweepEnded(_end(session, 0))


def _count_trials(session: Session, standings: Sequence[Standing]) -> Trials | None:
    """Where a search stands: its trials are numbered through, over all starts."""
    number = standings[0].run.number
    if not session.is_search or number is None:
        return None
    return Trials(num_before=number, num_all=session.num_trials)


def _end(session: Session, code: int) -> int:
    """Tell how the sweep stands, if anything ran, and let its folder go; `code` is the exit code if nothing did."""
    with session.held:
        if not session.standings:
            return code
        show_results(session)
    if session.interrupted:
        return _EXIT_INTERRUPTED
    return sweep_exit_code(session.standings) or (worker.EXIT_FAILED if code else 0)
