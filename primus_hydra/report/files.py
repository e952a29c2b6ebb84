"""A report as files for other programs: results.csv, results.json, results.parquet."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from primus_hydra.atomic_files import write_atomic, write_json_atomic
from primus_hydra.report.model import Report, Row

SCHEMA = 1
"""Version of results.json's layout."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_all(report: Report, folder: Path) -> list[str]:
    """Write results.csv, results.json and results.parquet, each whole or not at all.

    Args:
        report: what is written; `rows` are the lines of the tables, results.json has the runs as well.
        folder: made if it does not exist.

    Returns:
        One sentence for each file that could not be written; the others are there all the same.
    """
    writers: dict[str, Callable[[Path], None]] = {
        "results.csv": lambda path: write_atomic(path, make_csv(report.rows)),
        "results.json": lambda path: write_json_atomic(path, make_json(report)),
        "results.parquet": lambda path: write_atomic(path, make_parquet(report.rows)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return [f"The results could not be written into {folder}: {error.strerror}."]
    return [problem for name, write in writers.items() if (problem := try_writing(folder / name, write))]


def try_writing(path: Path, write: Callable[[Path], None]) -> str:
    """Write one file; returns what is wrong, empty if nothing."""
    try:
        write(path)
    except OSError as error:
        return f"{path} could not be written: {error.strerror}."
    except ImportError as error:
        return f"{path} was not written: {error}. Install primus-hydra with its dependencies."
    return ""


def make_csv(rows: Sequence[Row]) -> str:
    """One line a row. A text that a spreadsheet would execute as a formula begins with an apostrophe here."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Row)])
    writer.writeheader()
    writer.writerows({name: _defuse(value) for name, value in asdict(row).items()} for row in rows)
    return text.getvalue()


def make_json(report: Report) -> dict[str, Any]:
    """Everything as plain data: folders, objective, rows as in the table, runs with their configuration."""
    return {
        "schema": SCHEMA,
        "folders": [str(folder) for folder in report.folders],
        "objective": asdict(report.objective),
        "problems": list(report.problems),
        "rows": [asdict(row) for row in report.rows],
        "runs": [_plain(asdict(run)) for run in report.runs],
    }


def make_parquet(rows: Sequence[Row]) -> bytes:
    """The rows as an Apache Parquet file, each column of its field's own type even where it is empty.

    Raises:
        ImportError: pyarrow is not installed.
    """
    # A large package that the other files do not need.
    import pyarrow
    import pyarrow.parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    hints = get_type_hints(Row)
    schema = pyarrow.schema([(field.name, types[_value_type(hints[field.name])]) for field in fields(Row)])
    table = pyarrow.Table.from_pylist([asdict(row) for row in rows], schema=schema)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _value_type(hint: Any) -> type:
    """The type of a field's values; None is allowed in every column."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] or [hint]
    (kind,) = kinds
    assert isinstance(kind, type)
    return kind


def _defuse(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value
