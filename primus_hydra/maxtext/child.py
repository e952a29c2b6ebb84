"""The child process: load a run folder's configuration through MaxText, prove it, then train.

    python -m primus_hydra.maxtext.child RUN_DIR              load, compare, train
    python -m primus_hydra.maxtext.child --validate RUN_DIR   load and compare only

This is the only module that imports jax and maxtext; nothing of ours imports it.
Exit codes: 0 done, 3 the resolved configuration differs from the composed one, 4 JAX runs on another platform.
"""

import functools
import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import jax
from absl import app
from maxtext.common.goodput import RECORD_JOB_START_TIME, maybe_monitor_goodput, record_goodput
from maxtext.configs import pyconfig
from maxtext.trainers.pre_train import train

from primus_hydra.atomic_files import write_json_atomic
from primus_hydra.maxtext.model_files import configs_dir, load_model_keys, load_yaml
from primus_hydra.maxtext.truth import Difference, as_records, compare, plain
from primus_hydra.runs import RunFolder, read_json

EXIT_DIFFERENCE = 3
EXIT_PLATFORM = 4
NEVER_RECORDED = frozenset({"hf_access_token"})
_PACKAGES = (
    "maxtext",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "orbax-checkpoint",
    "jax-rocm7-plugin",
    "jax-rocm7-pjrt",
    "transformer-engine",
)


class CompileClock:
    """Seconds that XLA spent compiling in this process, from JAX's own monitoring events."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.seconds += duration_secs


def main(argv: list[str]) -> None:
    """Run what the module's docstring says for `argv` (without absl's flags)."""
    _hide_token()
    folder = RunFolder(Path(argv[-1]))
    record = folder.read_record()
    arguments = ["train.py", *read_json(folder.command_json)["maxtext_args"]]
    if "--validate" in argv:
        config = pyconfig.initialize([*arguments, "skip_jax_distributed_system=true"])
        _prove(folder, record, config, ignore=frozenset({"skip_jax_distributed_system"}))
        return
    clock = CompileClock()
    config, recorder = train.initialize(arguments)
    _prove(folder, record, config)
    _check_platform(folder, record)
    try:
        record_goodput(recorder, RECORD_JOB_START_TIME)
        with maybe_monitor_goodput(config):
            train.get_train_func(config, recorder, arguments)()
    finally:
        _write_child_json(folder, clock)


def _hide_token() -> None:
    """Keep the Hugging Face token out of MaxText's configuration, which MaxText writes to TensorBoard in full.

    MaxText copies HF_TOKEN into `hf_access_token`; huggingface_hub reads the other name by itself.
    """
    token = os.environ.pop("HF_TOKEN", None)
    if token:
        os.environ.setdefault("HUGGING_FACE_HUB_TOKEN", token)


def _prove(folder: RunFolder, record: dict[str, Any], config: Any, ignore: frozenset[str] = frozenset()) -> None:
    """Write effective.json; stop the process if MaxText would run something else than was composed."""
    resolved = {key: plain(value) for key, value in config.get_keys().items() if key not in NEVER_RECORDED}
    composed = {
        key: (entry["value"], entry["origin"]) for key, entry in record["composed"].items() if key not in ignore
    }
    model = load_model_keys(str(resolved.get("model_name", "default")))
    differences = compare(composed, resolved, model, load_yaml(configs_dir() / "base.yml"))
    if jax.process_index() == 0:
        write_json_atomic(folder.effective_json, {"differences": as_records(differences), "keys": resolved})
    if differences:
        _stop(EXIT_DIFFERENCE, "PRIMUS_HYDRA DIFFERENCE", differences)


def _check_platform(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write what JAX runs on; stop the process if it is not what the platform preset means."""
    _write_child_json(folder, None)
    wanted = record["settings"]["platform"]["jax_platform"]
    device = jax.devices()[0]
    found = "rocm" if "rocm" in getattr(device.client, "platform_version", "").lower() else device.platform
    if found != wanted and "no_gpu" not in record["accepted_rules"]:
        _stop(EXIT_PLATFORM, f"PRIMUS_HYDRA PLATFORM: JAX runs on {found}, but the platform preset means {wanted}.", [])


def _write_child_json(folder: RunFolder, clock: CompileClock | None) -> None:
    """Record the devices, versions, compile time (seconds) and peak device memory (bytes) of this process."""
    if jax.process_index() != 0:
        return
    device = jax.local_devices()[0]
    statistics = device.memory_stats() or {}
    write_json_atomic(
        folder.child_json,
        {
            "jax_platform": device.platform,
            "device_kind": device.device_kind,
            "num_devices": jax.device_count(),
            "num_processes": jax.process_count(),
            "versions": _installed_versions(),
            "compile_time_s": None if clock is None else round(clock.seconds, 3),
            "peak_device_memory_bytes": statistics.get("peak_bytes_in_use"),
            "resumed_at_step": None,
        },
    )


@functools.cache
def _installed_versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _stop(exit_code: int, headline: str, differences: list[Difference]) -> None:
    print("\n".join([headline, *(f"  {difference}" for difference in differences)]), file=sys.stderr, flush=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    # absl parses flags before main; ours are plain arguments, so they are bound here.
    app.run(lambda _: main(sys.argv[1:]), argv=sys.argv[:1])
