"""Our own settings: typed namespaces that never reach MaxText."""

import importlib.util
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from omegaconf import MISSING

PRIVATE_KEYS = frozenset({"trainable", "sink_level", "file_sink_level", "stderr_sink_level"})
"""Flat keys that keep their Primus meaning here and are stripped from the export."""


class Action(Enum):
    """What one command does."""

    train = "train"
    check = "check"
    export = "export"
    explain = "explain"


class OnInvalid(Enum):
    """What a sweep does about points that are refused."""

    skip = "skip"
    stop = "stop"


class Direction(Enum):
    """Which end of an objective is the better one."""

    maximize = "maximize"
    minimize = "minimize"


@dataclass(kw_only=True)
class RunSettings:
    """How one run is executed."""

    dir: str | None = None
    """The run folder, exactly there. Default: a unique folder under `outputs/`."""
    trainer: list[str] | None = None
    """Program that replaces the trainer; it receives the path of maxtext.yml and key=value overrides."""
    accept: list[str] = field(default_factory=list)
    """Names of rules that the user overrules; recorded with the run."""
    hang_after_s: float = 1800.0
    """Seconds without a finished step (compilation included) after which the run counts as hung."""
    timeout_s: float | None = None
    """Seconds after which the run is stopped whatever it does."""
    grace_s: float = 30.0
    """Seconds between SIGTERM and SIGKILL when the run is stopped."""
    warmup_steps: int = 3
    """Step records dropped from the front, by position, before figures are computed."""


@dataclass(kw_only=True)
class PlatformSettings:
    """The machine that the run is meant for."""

    name: str = MISSING
    """Group name, for example `mi300x`."""
    chip: str | None = None
    """LLVM target such as `gfx942`; null where there is no accelerator."""
    jax_platform: str = MISSING
    """Backend that JAX must report: `rocm` or `cpu`."""
    devices_per_node: int = MISSING
    """Accelerators in one node; on the CPU, host devices."""
    nodes: int = 1
    """Nodes that the run spans."""
    memory_per_device_bytes: int | None = None
    """Device memory, bytes; null: the host's memory, shared by all devices."""
    peak_bf16_tflops: float | None = None
    """Dense bf16 peak of one device, TFLOP/s."""
    peak_fp8_tflops: float | None = None
    """Dense fp8 peak of one device, TFLOP/s."""
    fp8: str = MISSING
    """MaxText's `quantization` value that means this chip's own fp8 format."""
    env: dict[str, str | None] = field(default_factory=dict)
    """Environment variables of the child; null removes a variable."""
    xla_flags: dict[str, str | None] = field(default_factory=dict)
    """XLA flags without the leading dashes; null removes a flag."""


@dataclass(kw_only=True)
class SweepSettings:
    """Which points `--multirun` has, and how they are treated."""

    dir: str | None = None
    """The sweep's folder, one run folder per point inside it. Default: a unique folder under `outputs/`."""
    resume: str | None = None
    """A sweep's folder whose recorded command is taken up again; read from the command line only."""
    grid: dict[str, Any] = field(default_factory=dict)
    """Key, setting or config group -> list of values; every combination is a point."""
    zip: list[dict[str, Any]] = field(default_factory=list)
    """Mappings of name -> list; the lists of one mapping are equally long, and their values go together by position."""
    points: list[dict[str, Any]] = field(default_factory=list)
    """Single points (name -> value) beside the grid."""
    on_invalid: OnInvalid = OnInvalid.skip
    """What happens when some points are refused: the others run, or nothing does."""
    fail_fast: bool = False
    """Stop after the first point that fails; the rest stay planned."""
    max_parallel: int = 1
    """Points that run at the same time; each gets `platform.devices_per_node` GPUs of its own."""
    repeats: int = 1
    """Runs of every point, to see the noise between runs."""
    retries: int = 0
    """Further attempts after a crash, a hang or a killed worker; never after a wrong configuration."""
    rungs: list[int] = field(default_factory=list)
    """Successive halving: steps after which only the best points go on, ascending, below `steps`."""
    keep: float = 0.5
    """Fraction of the points that survives a rung; at least one does."""
    stop_below: float | None = None
    """Stop a point whose speed, once measured, is below this fraction of the best completed one; null: never."""
    objective: list[str] = field(default_factory=lambda: ["tokens_per_second_per_device"])
    """Figures that points are ranked and searched by, the first ranks; see `objective.OBJECTIVES`."""
    direction: Direction | None = None
    """Whether more of the first objective is better; null: what its name says."""


@dataclass(kw_only=True)
class ExplainSettings:
    """What `action=explain` prints."""

    defaults: bool = False
    """Also list the MaxText keys that nobody set, with MaxText's default."""


@dataclass(kw_only=True)
class Settings:
    """Root of our namespaces. Every other top-level key is MaxText's."""

    action: Action = Action.train
    run: RunSettings = field(default_factory=RunSettings)
    platform: PlatformSettings = field(default_factory=PlatformSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    explain: ExplainSettings = field(default_factory=ExplainSettings)


@dataclass(kw_only=True)
class SearchSettings:
    """Settings under `hydra.sweeper` with `hydra/sweeper=optuna`; what is searched for is `sweep.objective`."""

    _target_: str = "hydra_plugins.primus_hydra_sweeper.search.SearchSweeper"
    n_trials: int = 20
    """Trials of the whole study, those of earlier starts included."""
    storage: str | None = None
    """Database URL of the study. Default: `search.db` in the sweep's folder."""
    study_name: str = "primus_hydra"
    params: dict[str, str] | None = None
    """Override name -> values, as a command line has them: `{per_device_batch_size: "range(1,9)"}`."""
    custom_search_space: str | None = None
    """Dotted path of a function (config, trial) that suggests further parameters."""


def register() -> None:
    """Put the schema into Hydra's ConfigStore, under the name that config.yaml lists first.

    The root is a plain mapping of typed nodes, so that MaxText's keys may stand beside ours.
    """
    node = {
        "action": Action.train.value,
        "run": RunSettings,
        "platform": PlatformSettings,
        "sweep": SweepSettings,
        "explain": ExplainSettings,
    }
    ConfigStore.instance().store(name="primus_hydra_schema", node=node)
    _replace_optuna()


def _replace_optuna() -> None:
    """Let `hydra/sweeper=optuna` be ours, which wraps the plugin's, where that is installed."""
    # The scan of all plugins stores theirs; Hydra scans once, and what is stored later wins.
    Plugins.instance()
    if importlib.util.find_spec("hydra_plugins.hydra_optuna_sweeper") is not None:
        node = {"defaults": [{"sampler": "tpe"}, "_self_"], **asdict(SearchSettings())}
        ConfigStore.instance().store(group="hydra/sweeper", name="optuna", node=node, provider="primus_hydra")
