"""From folders to a report: finished, running and broken sweeps, single runs, and runs of MaxText without us."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from primus_hydra.maxtext.metrics import StepRecord
from primus_hydra.objective import DEFAULT_OBJECTIVE, OBJECTIVES, Objective, choose_objective
from primus_hydra.own_command import normalise
from primus_hydra.report.foreign_run import adopt_steps, read_foreign_runs
from primus_hydra.report.model import Report, Run, Step
from primus_hydra.report.own_run import is_run_folder, read_run
from primus_hydra.report.rows import make_rows
from primus_hydra.report.short_names import describe_differences
from primus_hydra.report.so_far import tell_progress
from primus_hydra.report.step_files import read_records


def read_report(folders: Sequence[Path], objective: str | None = None, direction: str | None = None) -> Report:
    """Everything that these folders hold, ranked together. Never raises for what is in them.

    Args:
        folders: sweeps (folders of run folders), single run folders, or folders that MaxText alone wrote.
        objective: name of the figure to rank by; None: the one that the sweeps were started with.
        direction: `maximize` or `minimize`; None: the sweeps' own, or the natural one of the objective.

    Raises:
        KeyError: there is no such objective.
    """
    absolute = [normalise(folder) for folder in folders]
    labels = _label_sweeps(dict.fromkeys(_sweep_of(folder) for folder in absolute))
    runs: dict[tuple[Path, str], Run] = {}
    problems: list[str] = []
    empty = []
    for folder in absolute:
        found, wrong = _read_folder(folder, labels[_sweep_of(folder)])
        empty += [] if found else [folder]
        runs |= {(run.folder, run.name): run for run in found}
        problems += wrong
    described = _describe(list(runs.values()))
    chosen, note = _choose_objective(described, objective, direction)
    return Report(
        folders=tuple(absolute),
        objective=chosen,
        rows=make_rows(described, chosen),
        runs=tuple(described),
        empty_folders=tuple(empty),
        problems=(*problems, *note),
    )


def read_steps(run: Run) -> tuple[Step, ...]:
    """The finished steps of the run's last attempt, in order; read from its files at every call."""
    return tuple(map(_make_step, read_records(run.step_files, expected=run.result.get("num_steps"))))


def read_earlier_steps(run: Run) -> tuple[Step, ...]:
    """The steps before the last attempt's first one, of a run that went on from a checkpoint; else nothing."""
    first = run.result.get("first_step") or 0
    if not first:
        return ()
    found: dict[int, Step] = {}
    # metrics.jsonl.2 is newer than metrics.jsonl.1, and what it trained again counts.
    for file in sorted(run.folder.glob("metrics.jsonl.*"), key=_attempt_of):
        found |= {record.step: _make_step(record) for record in read_records([file])}
    return tuple(found[step] for step in sorted(found) if step < first)


def _attempt_of(file: Path) -> int:
    number = file.suffix.removeprefix(".")
    return int(number) if number.isdecimal() else 0


def _make_step(record: StepRecord) -> Step:
    loss = record.loss if _is_finite(record.loss) else None
    return Step(step=record.step, loss=loss, step_time_s=record.step_time_s)


def _is_finite(value: float) -> bool:
    return abs(value) < float("inf")  # NaN compares as False


def _sweep_of(folder: Path) -> Path:
    """The folder that holds the runs: repeats of one point meet there even when each is given on its own."""
    try:
        return folder.parent if is_run_folder(folder) else folder
    except OSError:
        return folder


def _label_sweeps(sweeps: Iterable[Path]) -> dict[Path, str]:
    found = list(sweeps)
    names = [path.name for path in found]
    texts = [path.name if names.count(path.name) == 1 else str(path) for path in found]
    return {path: text.encode("utf-8", "backslashreplace").decode() for path, text in zip(found, texts, strict=True)}


def _read_folder(folder: Path, sweep: str) -> tuple[list[Run], list[str]]:
    """The runs of one folder, and what is to be said about it. What cannot be read hides no other run."""
    runs, problems = _read_here(folder, sweep, is_child=False)
    if runs or problems:
        return runs, problems
    for child in sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")):
        found, wrong = _read_here(child, sweep, is_child=True)
        runs += found
        problems += wrong
    return runs, problems if runs or problems else [_explain_nothing(folder)]


def _read_here(folder: Path, sweep: str, *, is_child: bool) -> tuple[list[Run], list[str]]:
    """The run, or the foreign runs, whose files lie directly in the folder."""
    try:
        if is_run_folder(folder):
            return [_complete(read_run(folder, sweep))], []
        # Logs beside our run folders are a scheduler's, not runs.
        if not is_child and next(folder.glob("*/run.json"), None):
            return [], []
        return read_foreign_runs(folder, sweep), []
    except OSError as error:
        return [], [f"{folder} cannot be read: {error.strerror}."]


def _complete(run: Run) -> Run:
    """What the run's own files say beyond its record."""
    if run.state == "planned":
        return adopt_steps(run)
    return tell_progress(run) if run.state == "running" else run


def _explain_nothing(folder: Path) -> str:
    deeper = next(folder.glob("*/*/run.json"), None)
    hint = f" Name the folders inside it, for example {deeper.parent.parent}." if deeper else ""
    return (
        f"{folder} holds no run folders (folders with a run.json), and no metrics file or log of MaxText "
        f"(*.jsonl, metrics*.txt, *.log, *.out) with a training step.{hint}"
    )


def _describe(runs: Sequence[Run]) -> list[Run]:
    """Say of each run what not all share; a run whose overrides are unknown says nothing about the others."""
    known = [run.overrides for run in runs if run.overrides]
    differences = iter(describe_differences(known))
    texts = [next(differences) if run.overrides else "" for run in runs]
    return [replace(run, differs=text or run.point) for run, text in zip(runs, texts, strict=True)]


def _choose_objective(runs: Sequence[Run], name: str | None, direction: str | None) -> tuple[Objective, list[str]]:
    if name is not None:
        return choose_objective(name, direction), []
    wanted = dict.fromkeys((run.objectives[0], run.direction) for run in runs if run.objectives)
    known = [pair for pair in wanted if pair[0] in OBJECTIVES] or [(DEFAULT_OBJECTIVE, None)]
    chosen = choose_objective(known[0][0], direction or known[0][1])
    if len(wanted) < 2:
        return chosen, []
    names = ", ".join(dict.fromkeys(pair[0] for pair in wanted))
    note = f"These runs were started to be ranked in different ways ({names}); this report ranks by {chosen.title}."
    return chosen, [f"{note} Another: --objective NAME --direction maximize|minimize."]
