"""What a report is made of: plain data, read from run folders and drawn by the tables, the files and the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primus_hydra.objective import Objective

FOREIGN = "foreign"
"""State of a run that was made without us: there is no record of how it went."""
FINISHED = frozenset({"completed", FOREIGN})
"""States whose figures may be compared."""
PENDING = frozenset({"planning", "planned", "running"})
"""States of runs that are still to come to an end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One finished training step."""

    step: int
    loss: float | None
    """None where it was not finite."""
    step_time_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run folder as it stands."""

    name: str
    """Name of the run folder; of a foreign run that shares its folder with others, the name of its files."""
    folder: Path
    """Absolute path."""
    sweep: str
    """The folder that was given to the report and that holds this run: its name, or its path where names repeat."""
    point: str
    """Runs with the same text are repeats of one point: the folder's name without its repeat."""
    repeat: int
    """From 1."""
    differs: str
    """Overrides that not all runs of the report share."""
    overrides: tuple[str, ...]
    state: str
    """As in run.json; `abandoned` where the worker died, `unreadable` where the record is damaged, or `FOREIGN`:
    figures then come from MaxText's metrics file or its log. So it is where the command.sh of a planned run was run."""
    failure: str | None
    reason: str
    composed: Mapping[str, Any]
    """MaxText key -> composed value; empty for a foreign run."""
    environment: Mapping[str, str]
    """Variables that we set, XLA_FLAGS among them; no secrets."""
    trainer: tuple[str, ...]
    """Program in MaxText's place; empty: MaxText, or unknown."""
    versions: Mapping[str, str]
    result: Mapping[str, Any]
    """The figures of run.json's `result`; empty where there are none."""
    command: str
    """Repeats the run, for a shell; empty where unknown."""
    step_files: tuple[Path, ...]
    """Metrics files and logs that hold the steps of the last attempt, whether or not they exist; see
    `read.read_steps`."""
    objectives: tuple[str, ...] = ()
    """Names of the figures that its sweep was started to compare, the ranking one first; empty where unknown."""
    peak_bf16_tflops: float | None = None
    """Dense bf16 peak of one device, TFLOP/s, as its platform's settings say."""
    direction: str | None = None
    """`maximize` or `minimize` where its sweep was started with a direction of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One point of a sweep: its only run, or the repeats together."""

    point: str
    """Name of the first repeat's run folder."""
    sweep: str
    differs: str
    state: str
    """`completed` (or `foreign`) where any repeat has a score's figures; otherwise the state of the first repeat."""
    failure: str | None
    reason: str
    """Why there is no score; of a point with a score, what became of the repeats that have none."""
    rank: int | None
    """1 is the best; None where there is no score. Points that cannot be told apart share a rank."""
    score: float | None
    """The objective: of the only run, or the median over the completed repeats."""
    score_low: float | None
    """Lower end of the interval that decides about ties."""
    score_high: float | None
    num_repeats: int
    num_completed: int
    step_time_s: float | None
    """Median after the warm-up; over repeats the median of their medians, and so for every figure below."""
    step_time_p25_s: float | None
    step_time_p75_s: float | None
    num_steps_measured: int | None
    """Of all completed repeats together."""
    last_step: int | None
    """Lowest last step of the completed repeats: losses of runs that trained for different lengths do not compare."""
    tokens_per_second_per_device: float | None
    tflops_per_second_per_device: float | None
    final_loss: float | None
    peak_device_memory_gib: float | None
    peak_host_memory_gib: float | None
    compile_time_s: float | None
    platform: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything that is shown about one or several folders."""

    folders: tuple[Path, ...]
    objective: Objective
    """What ranks the rows, in its direction."""
    rows: tuple[Row, ...]
    """Best first, then those without a score in their order."""
    runs: tuple[Run, ...]
    """Every run folder, in the order of the folders."""
    empty_folders: tuple[Path, ...] = ()
    """Those of `folders` that hold no run."""
    problems: tuple[str, ...] = ()
    """Sentences: folders that hold nothing to report, and what has to be known about the choice of the objective."""
