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
from primus_hydra.report.best import write_best
from primus_hydra.report.files import write_all
from primus_hydra.report.model import Report
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.read import read_report
from primus_hydra.report.sweep_table import sweep_table
from primus_hydra.tell import tell

_EXIT_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Print the table and write the files; returns the exit code."""
    options = _make_parser().parse_args(arguments)
    report = read_report(options.folders, options.objective, options.direction)
    for problem in report.problems:
        _complain(problem)
    if not report.runs:
        return _EXIT_USAGE
    voice = Voice(Console())
    with voice.attempt():
        voice.console.print(sweep_table(report))
    folder = options.output or _choose_output(report)
    problems = write_all(report, folder)
    told, more = write_best(report, folder)
    for problem in [*problems, *more]:
        _complain(problem)
    if told:
        voice.say(make_plain(told))
    if options.page:
        _write_page(report, folder / "report.html", voice)
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


def _write_page(report: Report, file: Path, voice: Voice) -> None:
    # Imported here: drawing needs large packages.
    try:
        from primus_hydra.report.page import write_page

        write_page(report, file)
    except ImportError as error:
        _complain(f"{file} was not written: {error}. Install primus-hydra with its dependencies.")
    except OSError as error:
        _complain(f"{file} could not be written: {error.strerror}.")
    else:
        voice.say(make_plain(f"Page: {file.absolute()}"))


def _complain(problem: str) -> None:
    tell(make_plain(problem), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
