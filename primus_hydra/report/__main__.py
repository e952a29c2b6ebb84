"""`python -m primus_hydra.report FOLDER...`: the table of sweeps and runs, and the same as files beside them.

Exit codes: 0 all is shown, 2 a folder holds nothing or the command line is wrong.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from primus_hydra.objective import OBJECTIVES
from primus_hydra.progress import Voice
from primus_hydra.report.model import Report
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.publish import publish
from primus_hydra.report.read import read_report
from primus_hydra.report.sweep_table import sweep_table
from primus_hydra.tell import prepare_streams, tell

_EXIT_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Print the table and write the files; returns the exit code."""
    prepare_streams()
    options = _make_parser().parse_args(arguments)
    report = read_report(options.folders, options.objective, options.direction)
    for problem in report.problems:
        _complain(problem)
    if not report.runs:
        return _EXIT_USAGE
    voice = Voice(Console())
    voice.show(sweep_table(report))
    folder = options.output or _choose_output(report)
    sentences, problems = publish(report, folder, page=options.page)
    for problem in problems:
        _complain(problem)
    for sentence in sentences:
        voice.say(make_plain(sentence))
    return _EXIT_USAGE if report.empty_folders else 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m primus_hydra.report",
        description="Rank the runs of sweeps, single run folders and folders that MaxText wrote without primus_hydra; "
        "several folders make one report.",
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="a sweep, a run folder, or MaxText's own"
    )
    parser.add_argument(
        "--objective", choices=OBJECTIVES, metavar="NAME", help=f"rank by one of {', '.join(OBJECTIVES)}"
    )
    parser.add_argument(
        "--direction", choices=("maximize", "minimize"), help="which end of the objective is the better"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the files go; default: the first folder")
    parser.add_argument("--no-page", dest="page", action="store_false", help="write no report.html")
    return parser


def _choose_output(report: Report) -> Path:
    """The first folder that holds anything."""
    return next(folder for folder in report.folders if folder not in report.empty_folders)


def _complain(problem: str) -> None:
    tell(make_plain(problem), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
