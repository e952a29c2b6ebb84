"""`python -m primus_hydra.report SWEEP_DIR...`: the table of sweeps, and results.csv and results.json beside them."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from rich.console import Console

from primus_hydra.report.rows import Row, read_rows
from primus_hydra.report.sweep_table import sweep_table
from primus_hydra.runs import write_text_atomic

_EXIT_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Print and write the results of each folder; returns the exit code."""
    console = Console()
    if not arguments:
        print("Usage: python -m primus_hydra.report SWEEP_DIR...", file=sys.stderr)
        return _EXIT_USAGE
    empty = False
    for folder in map(Path, arguments):
        rows = read_rows(folder)
        if not rows:
            print(f"{folder} holds no run folders (folders with a run.json).", file=sys.stderr)
            empty = True
            continue
        console.print(sweep_table(rows))
        write_results(folder, rows)
    return _EXIT_USAGE if empty else 0


def write_results(folder: Path, rows: Sequence[Row]) -> None:
    """Write results.csv and results.json into the sweep's folder; a folder that cannot be written is told."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Row)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    try:
        write_text_atomic(folder / "results.csv", text.getvalue())
        write_text_atomic(folder / "results.json", json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    except OSError as error:
        print(f"The results could not be written into {folder}: {error.strerror}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
