"""One self-contained report.html: opens from disk, needs no network, executes nothing but its own two scripts."""

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from primus_hydra import __version__
from primus_hydra.atomic_files import write_atomic
from primus_hydra.report.bundle import load_bundle
from primus_hydra.report.differences import Shared, list_differences, list_shared
from primus_hydra.report.figure_list import list_figures
from primus_hydra.report.headline import write_headline
from primus_hydra.report.model import Report, Run
from primus_hydra.report.page_table import list_failures, make_table
from primus_hydra.report.points import Point, read_points
from primus_hydra.report.read import read_earlier_steps, read_steps
from primus_hydra.report.traces import Trace, Traces, choose_traced
from primus_hydra.report.vega import CONFIG

_TEMPLATES = Path(__file__).parent / "templates"
MAX_MATRIX = 60
"""Points that the table of differences shows."""
_KIND_TITLES = {"environment": "Environment", "XLA flag": "XLA flags", "version": "Versions", "machine": "Machine"}


def write_page(report: Report, file: Path) -> None:
    """Write the report as one HTML file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    points = read_points(report)
    traced = choose_traced(points)
    traces = {point.label: [_read_trace(run) for run in runs] for point, runs in traced}
    text = render_page(report, points, traces)
    # A path may hold bytes that are no text.
    write_atomic(file, text.encode("utf-8", "backslashreplace"))


def render_page(report: Report, points: Sequence[Point], traces: Traces) -> str:
    """The page's text.

    Args:
        report: what is shown.
        points: its rows, from `read_points`.
        traces: steps of the points that get curves.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    figures, missing = list_figures(points, report.objective, traces)
    # The bundle declares names at its top level; in a function of its own they cannot meet anybody else's.
    bundle = f"(()=>{{{load_bundle()}}})();"
    scripts = (bundle, (_TEMPLATES / "report.js").read_text(encoding="utf-8"))
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html").render(
        title=" and ".join(dict.fromkeys(row.sweep for row in report.rows)) or "Report",
        policy=_write_policy(scripts, style),
        style=style,
        scripts=scripts,
        headline=write_headline(report, points),
        problems=report.problems,
        states=Counter(row.state for row in report.rows).most_common(),
        table=make_table(points, report.objective),
        failures=list_failures(points),
        figures=figures,
        missing=missing,
        chart_data={"config": CONFIG, "panels": {each.name: [panel.spec for panel in each.panels] for each in figures}},
        differences=_make_matrix(points),
        shared=_group_shared(list_shared(points)),
        folders=[os.fsencode(folder).decode("utf-8", "backslashreplace") for folder in report.folders],
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _read_trace(run: Run) -> Trace:
    return Trace(read_steps(run), run.result.get("warmup_steps") or 0, run.repeat, read_earlier_steps(run))


def _write_policy(scripts: Sequence[str], style: str) -> str:
    """Content-Security-Policy: exactly these texts may run, and nothing may be fetched from anywhere."""
    allowed = " ".join(_hash_source(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash_source(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _make_matrix(points: Sequence[Point]) -> dict[str, Any]:
    """The table of differences: points down where there are more of them, keys down otherwise."""
    differences = list_differences(points)
    shown = points[:MAX_MATRIX]
    labels = [point.label for point in shown]
    names = [each.name if each.kind == "key" else f"{each.name} ({each.kind})" for each in differences]
    columns = [[text or '""' for text in each.values[:MAX_MATRIX]] for each in differences]
    note = f"The first {MAX_MATRIX} of {len(points)} points." if len(points) > MAX_MATRIX else ""
    if len(differences) > len(shown):
        rows = [[name, *values] for name, values in zip(names, columns, strict=True)]
        return {"note": note, "header": ["", *labels], "rows": rows}
    rows = [[label, *values] for label, *values in zip(labels, *columns, strict=True)] if columns else []
    return {"note": note, "header": ["point", *names], "rows": rows}


def _group_shared(shared: Sequence[Shared]) -> list[tuple[str, list[Shared]]]:
    return [(_KIND_TITLES[kind], list(entries)) for kind, entries in groupby(shared, key=lambda entry: entry.kind)]
