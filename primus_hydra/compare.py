"""`python -m primus_hydra.compare A B`: what differs between two runs, beside what came of it.

A and B are run folders, or sweep folders, which stand for their best run. Exit codes: 0 compared, 2 they cannot be.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from primus_hydra.atomic_files import format_json
from primus_hydra.progress import Voice
from primus_hydra.report.comparison import Comparison, NothingToCompareError, compare
from primus_hydra.report.comparison_table import comparison_table, describe_verdict
from primus_hydra.report.plain_text import make_plain
from primus_hydra.tell import prepare_streams, tell

_EXIT_USAGE = 2


def _make_json(comparison: Comparison) -> str:
    return format_json(
        {
            "schema": 1,
            "runs": [
                {"folder": str(run.folder), "name": run.name, "state": run.state, "failure": run.failure}
                for run in comparison.runs
            ],
            "objective": comparison.objective.name,
            "verdict": describe_verdict(comparison),
            "rests_on": [
                {name: getattr(row, name) for name in ("num_repeats", "num_steps_measured", "score_low", "score_high")}
                for row in comparison.rows
            ],
            "figures": [asdict(figure) for figure in comparison.figures],
            "differences": [
                {"kind": kind, "name": name, "a": a, "b": b} for kind, name, (a, b) in comparison.differences
            ],
        }
    )


def main(arguments: Sequence[str]) -> int:
    """Print the comparison; returns the exit code."""
    prepare_streams()
    parser = argparse.ArgumentParser(
        prog="python -m primus_hydra.compare",
        description="What differs between two runs, and what came of it. A sweep folder stands for its best run.",
    )
    parser.add_argument("a", type=Path, metavar="A", help="a run folder or a sweep folder")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    try:
        comparison = compare(options.a, options.b)
    except NothingToCompareError as error:
        tell(make_plain(str(error)), file=sys.stderr)
        return _EXIT_USAGE
    voice = Voice(Console())
    if options.json:
        voice.say(_make_json(comparison).rstrip("\n"))
    else:
        voice.show(comparison_table(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
