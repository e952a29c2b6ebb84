"""What planning and the rungs of a sweep write into run folders, and what is read back from there."""

import os
from collections.abc import Iterable, Mapping

from primus_hydra.destination import mark_checkpoints
from primus_hydra.errors import format_problem
from primus_hydra.export import write_run_folder
from primus_hydra.launch import expected_steps
from primus_hydra.points import Plan, Point
from primus_hydra.redaction import redact_all, secret_values
from primus_hydra.runs import Record, RecordError, RunFolder, RunFolderError


def write_plans(plans: Iterable[Plan]) -> None:
    """Write run folders, ready to be executed.

    Raises:
        OSError, RunFolderError: one of them cannot be written; the record that was there is as it was.
    """
    for plan in plans:
        write_run_folder(plan)
        mark_checkpoints(plan.keys, {"identity": plan.identity})


def write_invalid_record(point: Point) -> None:
    """Record that a point never runs, with the whole reason; a record that is there already is kept.

    Raises:
        OSError: the folder cannot be written.
    """
    if point.folder.run_json.exists():
        return
    record = {
        "schema": 1,
        "name": point.folder.path.name,
        "state": "invalid",
        "failure": None,
        "reason": " ".join(problem.what for problem in point.problems),
        "point": point.number,
        "repeat": point.repeat,
        "overrides": list(point.overrides),
        "problems": [format_problem(problem) for problem in point.problems],
        "attempt": 0,
        "result": None,
    }
    point.folder.path.mkdir(parents=True, exist_ok=True)
    point.folder.write_record(redact_all(record, secret_values(os.environ)))


def skip_run(folder: RunFolder, reason: str) -> None:
    """Say of a run that completed a rung that it does not go on; its figures are kept.

    Raises:
        OSError, RunFolderError: the record cannot be read or written.
    """
    with folder.locked():
        record = folder.read_record()
        folder.write_record(record | {"state": "skipped", "failure": "rung", "reason": reason})


def describe_write_error(error: OSError | RunFolderError) -> str:
    """One sentence: which file, and what the operating system has against it."""
    if isinstance(error, RunFolderError) or error.strerror is None:
        return str(error)
    place = f"{error.filename} " if error.filename else "The sweep's folder "
    return f"{place}cannot be written: {error.strerror}."


def read_if_there(folder: RunFolder) -> Record | None:
    """The run's record; None where there is none that can be read."""
    try:
        return folder.read_record()
    except RecordError:
        return None


def count_planned_steps(record: Record) -> int | None:
    """Steps that the run's last attempt was to make; None where its record does not tell."""
    composed = record.get("composed")
    return expected_steps(composed) if isinstance(composed, Mapping) else None
