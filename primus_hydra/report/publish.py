"""Everything that a report leaves on the disk: results, the winner as a preset, the page."""

from pathlib import Path

from primus_hydra.own_command import normalise
from primus_hydra.report.best import write_best
from primus_hydra.report.files import try_writing, write_all
from primus_hydra.report.model import Report


def publish(report: Report, folder: Path, *, page: bool) -> tuple[list[str], list[str]]:
    """Write the files of a report into a folder; what cannot be written stops nothing.

    Args:
        report: with at least one run.
        folder: where the files go.
        page: whether report.html is among them.

    Returns:
        What a person wants to know about them, and what is wrong; one sentence each.
    """
    problems = write_all(report, folder)
    told, more = write_best(report, folder)
    problems += more
    sentences = [told] if told else []
    if page:
        file = normalise(folder) / "report.html"
        problem = try_writing(file, lambda path: _write_page(report, path))
        sentences += [] if problem else [f"Page: {file}"]
        problems += [problem] if problem else []
    return sentences, problems


def _write_page(report: Report, file: Path) -> None:
    # Imported here: drawing needs large packages.
    from primus_hydra.report.page import write_page

    write_page(report, file)
