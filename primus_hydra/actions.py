"""What is done with composed plans: explain, check, export or train them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from primus_hydra import worker
from primus_hydra.destination import mark_checkpoints
from primus_hydra.errors import ConfigError, Problem, format_problems, format_refusal
from primus_hydra.explain import explain_lines
from primus_hydra.export import Plan, complete_keys, write_run_folder
from primus_hydra.result_table import result_table
from primus_hydra.runs import Record, RunFolder, RunFolderError
from primus_hydra.schema import Action

EXIT_CONFIG = worker.EXIT_NOT_STARTED
EXIT_INTERRUPTED = worker.EXIT_CODES["interrupted"]
_VALIDATION_TIMEOUT_S = 600


def perform(plans: Sequence[Plan | ConfigError]) -> int:
    """Do what the plans ask for, in order; returns the program's exit code.

    A sweep's wrong points are told and left out; the others are performed.
    """
    refused = [plan for plan in plans if isinstance(plan, ConfigError)]
    ready = [plan for plan in plans if isinstance(plan, Plan)]
    for error in refused:
        print(format_refusal(error.problems), file=sys.stderr)
    for plan in ready:
        if plan.warnings:
            print(f"Warnings:\n{format_problems(plan.warnings)}", file=sys.stderr)
    codes = [_perform_one(plan) for plan in ready if plan.composition.settings.action is not Action.train]
    codes += _train_all([plan for plan in ready if plan.composition.settings.action is Action.train])
    if EXIT_INTERRUPTED in codes:
        return EXIT_INTERRUPTED
    if refused and (not ready or all(code == EXIT_CONFIG for code in codes)):
        return EXIT_CONFIG
    return worker.EXIT_FAILED if refused else max(codes, default=0)


def _summarise(plan: Plan) -> str:
    """One line before anything happens: what trains where, on how much a step."""
    platform, batch = plan.composition.settings.platform, plan.batch
    model = plan.choices.get("model") if plan.keys.get("model_name") in (None, "default") else plan.keys["model_name"]
    size = "global batch not known" if batch.num_sequences is None else f"global batch {batch.num_sequences} sequences"
    tokens = "" if batch.num_tokens is None else f" = {batch.num_tokens:,} tokens a step"
    devices = "1 device" if batch.num_devices == 1 else f"{batch.num_devices or 'an unknown number of'} devices"
    return f"{model} on {platform.name}, {devices}: {size}{tokens}"


def _perform_one(plan: Plan) -> int:
    settings = plan.composition.settings
    if settings.action is Action.explain:
        print(f"# {_summarise(plan)}")
        print("\n".join(explain_lines(plan.keys, plan.origins, with_defaults=settings.explain.defaults)))
        return 0
    print(_summarise(plan))
    if settings.action is Action.export:
        return _write(plan, done=f"Exported to {plan.folder.path}")
    return _check(plan)


def _train_all(plans: Sequence[Plan]) -> list[int]:
    """Run plans one after the other, each in its own process; a failure does not stop the next."""
    console = Console()
    codes: list[int] = []
    done: list[tuple[Plan, Record]] = []
    for plan in plans:
        print(_summarise(plan))
        failed = _write(plan, done=f"Run folder: {plan.folder.path}")
        record = None if failed else _train(plan, console)
        codes.append(EXIT_CONFIG if record is None else worker.exit_code(record))
        if record is not None:
            done.append((plan, record))
        if codes[-1] == EXIT_INTERRUPTED:
            break
    if done:
        console.print(result_table([record for _, record in done]))
        console.print("\n".join(f"Run folder: {plan.folder.path}" for plan, _ in done), soft_wrap=True, highlight=False)
    return codes


def _train(plan: Plan, console: Console) -> Record | None:
    try:
        mark_checkpoints(plan.keys, plan.folder.read_record())
        return worker.execute(plan.folder, console=console, secret_env=plan.secret_env)
    except (RunFolderError, OSError) as error:
        print(error, file=sys.stderr)
        return None


def _write(plan: Plan, *, done: str) -> int:
    try:
        write_run_folder(plan)
    except OSError as error:
        print(f"The run folder {plan.folder.path} cannot be written: {error.strerror}.", file=sys.stderr)
        return EXIT_CONFIG
    except RunFolderError as error:
        print(error, file=sys.stderr)
        return EXIT_CONFIG
    print(done)
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
        print("Checked: MaxText accepts this configuration and resolves it as composed.")
        return 0
    problem = Problem(what=f"MaxText does not accept this configuration: {_reason(child.stderr)}")
    print(format_refusal([problem]), file=sys.stderr)
    return EXIT_CONFIG


def _reason(log: str) -> str:
    """The line in which MaxText (or our comparison) says what is wrong, cut to a readable length."""
    lines = log.splitlines()
    for marker in ("PRIMUS_HYDRA DIFFERENCE", "MAXTEXT CONFIG ERROR: "):
        for index, line in enumerate(lines):
            if marker in line:
                return "\n".join([line.partition(marker)[2], *lines[index + 1 : index + 20]]).strip()[:1500]
    return (lines or ["it ended without a message"])[-1][:500]
