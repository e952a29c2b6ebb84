"""Plan run folders for the stub trainer, and wait for it to say how far it is."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from primus_hydra.atomic_files import write_json_atomic
from primus_hydra.environment import Environment
from primus_hydra.export import complete_keys
from primus_hydra.flatten import Composition
from primus_hydra.identity import fingerprint, identify
from primus_hydra.points import Batch, Plan
from primus_hydra.runs import RunFolder
from primus_hydra.schema import PlatformSettings, Settings

STUB_TRAINER = Path(__file__).with_name("trainers") / "stub_trainer.py"


def plan_stub_run(
    path: Path,
    stub: str = "",
    *,
    steps: int = 8,
    run: Mapping[str, Any] | None = None,
    private: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> RunFolder:
    """Write a folder as planning leaves it, with the stub trainer in MaxText's place.

    Args:
        path: the folder.
        stub: what the stub is to do, see its docstring.
        steps: MaxText's key.
        run: run settings that differ from the ones here.
        private: sink levels.
        env: more variables that the plan sets.
    """
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path)
    keys = {"steps": steps, "log_period": 100, "run_name": path.name, "metrics_file": str(folder.metrics_jsonl)}
    trainer, environment = [sys.executable, str(STUB_TRAINER)], {"STUB": stub, **(env or {})}
    identity = identify(keys, environment, trainer)
    write_json_atomic(folder.maxtext_yml, keys)
    write_json_atomic(
        folder.command_json,
        {
            "argv": [],
            "trainer": trainer,
            "maxtext_args": [str(folder.maxtext_yml)],
            "env": environment,
            "unset_env": ["UNWANTED"],
            "cwd": str(path),
        },
    )
    folder.write_record(
        {
            "schema": 1,
            "name": path.name,
            "state": "planned",
            "overrides": [],
            "point": None,
            "repeat": 1,
            "identity": identity,
            "fingerprint": fingerprint(identity),
            "composed": {key: {"value": value, "origin": "test"} for key, value in keys.items()},
            "private": dict(private or {}),
            "settings": {
                "run": {"timeout_s": None, "hang_after_s": 60.0, "grace_s": 5.0, "warmup_steps": 3, **(run or {})}
            },
            "warnings": [],
            "versions": {},
            "attempt": 0,
            "result": None,
        }
    )
    return folder


def make_stub_plan(path: Path, *, steps: int = 8, env: Mapping[str, str] | None = None) -> Plan:
    """A plan for the stub trainer that is not written yet; all that a composition brings, without Hydra.

    Args:
        path: the run folder.
        steps: MaxText's key.
        env: variables that the plan sets.
    """
    settings = Settings()
    settings.run.trainer = [sys.executable, str(STUB_TRAINER)]
    settings.platform = PlatformSettings(name="cpu", jax_platform="cpu", devices_per_node=1, fp8="fp8")
    folder = RunFolder(path)
    composition = Composition(keys={"steps": steps, "model_name": "default"}, private={}, settings=settings, origins={})
    keys, origins = complete_keys(composition, folder)
    environment = Environment(set=dict(env or {}), unset=(), inherited={}, sources={}, notes=())
    return Plan(
        folder=folder,
        keys=keys,
        origins=origins,
        composition=composition,
        environment=environment,
        batch=Batch(num_devices=1, num_sequences=1, sequence_length=128),
        warnings=(),
        overrides=(f"steps={steps}",),
        choices={},
        record_composition=lambda: {"overrides.yaml": f"- steps={steps}\n"},
    )


def make_ready_fifo(path: Path) -> dict[str, str]:
    """A FIFO for STUB_READY; `read_ready` blocks until the stub has something to say."""
    os.mkfifo(path)
    return {"STUB_READY": str(path)}


def read_ready(env: Mapping[str, str]) -> tuple[str, int]:
    """What the stub says, and its pid."""
    word, pid = Path(env["STUB_READY"]).read_text(encoding="ascii").split()
    return word, int(pid)


def read_grandchildren(folder: RunFolder) -> list[int]:
    """Pids of the processes that the stub left behind."""
    pids: list[int] = json.loads((folder.path / "grandchildren.json").read_text(encoding="ascii"))
    return pids
