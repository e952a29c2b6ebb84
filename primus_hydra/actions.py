"""What is done with composed plans: explain, check, export or train them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from primus_hydra import worker
from primus_hydra.destination import mark_checkpoints
from primus_hydra.errors import Problem, format_problems, format_refusal
from primus_hydra.explain import explain_environment, explain_lines
from primus_hydra.export import complete_keys, write_run_folder
from primus_hydra.points import Plan, Point
from primus_hydra.progress import Voice
from primus_hydra.report.digits import format_count
from primus_hydra.report.run_table import run_table
from primus_hydra.runs import RunFolder, RunFolderError
from primus_hydra.schema import Action
from primus_hydra.tell import tell

EXIT_CONFIG = worker.EXIT_NOT_STARTED
_VALIDATION_TIMEOUT_S = 600


def perform(points: Sequence[Point]) -> int:
    """Do what was composed for a run of its own; returns the program's exit code."""
    if not points:  # Hydra answered itself: --cfg, --info
        return 0
    (point,) = points
    if point.plan is None:
        tell(format_refusal(point.problems), file=sys.stderr)
        return EXIT_CONFIG
    warn(point.plan.warnings)
    return perform_plan(point.plan)


def warn(warnings: Iterable[Problem]) -> None:
    """Tell what is suspicious and stops nothing."""
    if text := format_problems(warnings):
        tell(f"Warnings:\n{text}", file=sys.stderr)


def _summarise(plan: Plan) -> str:
    """One line before anything happens: what trains where, on how much a step."""
    platform, batch = plan.composition.settings.platform, plan.batch
    model = plan.choices.get("model") if plan.keys.get("model_name") in (None, "default") else plan.keys["model_name"]
    size = "global batch not known" if batch.num_sequences is None else f"global batch {batch.num_sequences} sequences"
    tokens = "" if batch.num_tokens is None else f" = {batch.num_tokens:,} tokens a step"
    devices = format_count(batch.num_devices, "device") if batch.num_devices else "an unknown number of devices"
    return f"{model} on {platform.name}, {devices}: {size}{tokens}"


def perform_plan(plan: Plan) -> int:
    """Do what `action` says about one plan; returns the exit code."""
    settings = plan.composition.settings
    if settings.action is Action.explain:
        tell(f"# {_summarise(plan)}")
        tell("\n".join(explain_lines(plan.keys, plan.origins, with_defaults=settings.explain.defaults)))
        tell("\n".join(explain_environment(plan.environment.set, plan.environment.sources)))
        return 0
    if settings.action is Action.train:
        return _train(plan)
    tell(_summarise(plan))
    return _write(plan, done=f"Exported to {plan.folder.path}") if settings.action is Action.export else _check(plan)


def _train(plan: Plan) -> int:
    """Write one run folder, execute it and show the result; returns the exit code."""
    console = Console()
    tell(_summarise(plan))
    code = _write(plan, done=f"Run folder: {plan.folder.path}") or _execute(plan, console)
    if code != EXIT_CONFIG:
        Voice(console).show(run_table(plan.folder.read_record()))
        tell(f"Run folder: {plan.folder.path}")
    return code


def _execute(plan: Plan, console: Console) -> int:
    """Execute a written run folder; returns the exit code of this run."""
    try:
        mark_checkpoints(plan.keys, plan.folder.read_record())
        record = worker.execute(
            plan.folder,
            console=console,
            secret_env=plan.secret_env,
            expect_fingerprint=plan.fingerprint,
        )
    except (RunFolderError, OSError) as error:
        tell(str(error), file=sys.stderr)
        return EXIT_CONFIG
    return worker.exit_code(record)


def _write(plan: Plan, *, done: str) -> int:
    try:
        write_run_folder(plan)
    except OSError as error:
        tell(f"The run folder {plan.folder.path} cannot be written: {error.strerror}.", file=sys.stderr)
        return EXIT_CONFIG
    except RunFolderError as error:
        tell(str(error), file=sys.stderr)
        return EXIT_CONFIG
    tell(done)
    return 0


def _check(plan: Plan) -> int:
    """Validate through MaxText itself, in a temporary folder, without training."""
    with tempfile.TemporaryDirectory(prefix="primus_hydra-") as scratch:
        folder = RunFolder(Path(scratch))
        keys, origins = complete_keys(plan.composition, folder)
        write_run_folder(replace(plan, folder=folder, keys=keys, origins=origins))
        devices = plan.composition.settings.platform.devices_per_node
        env = {name: value for name, value in os.environ.items() if name not in plan.environment.unset}
        env |= plan.environment.set | {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        }
        child = subprocess.run(
            [sys.executable, "-m", "primus_hydra.maxtext.child", "--validate", scratch],
            env=env,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=_VALIDATION_TIMEOUT_S,
            check=False,
        )
    if child.returncode == 0:
        tell("Checked: MaxText accepts this configuration and resolves it as composed.")
        return 0
    problem = Problem(what=f"MaxText does not accept this configuration: {_reason(child.stderr)}")
    tell(format_refusal([problem]), file=sys.stderr)
    return EXIT_CONFIG


def _reason(log: str) -> str:
    """The line in which MaxText (or our comparison) says what is wrong, cut to a readable length."""
    lines = log.splitlines()
    for marker in ("PRIMUS_HYDRA DIFFERENCE", "MAXTEXT CONFIG ERROR: "):
        for index, line in enumerate(lines):
            if marker in line:
                return "\n".join([line.partition(marker)[2], *lines[index + 1 : index + 20]]).strip()[:1500]
    return (lines or ["it ended without a message"])[-1][:500]
