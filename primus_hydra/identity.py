"""What makes two runs the same: MaxText's keys, the environment that we set, and the program that trains."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from primus_hydra.redaction import is_secret_name
from primus_hydra.xla_flags import parse_flags

Identity = dict[str, Any]
"""Name as it is typed on the command line (`steps`, `platform.env.NVTE_FUSED_ATTN`,
`platform.xla_flags.xla_gpu_autotune_level`, `run.trainer`) -> value in plain JSON types."""

OUTPUT_KEYS = frozenset(
    {"run_name", "base_output_directory", "metrics_file", "checkpoint_dir", "metrics_dir", "tensorboard_dir"}
)
"""MaxText keys that say where a run writes and what it is called."""
_REPORTING_KEYS = """
    log_period log_config enable_tensorboard gcs_metrics save_config_to_gcs enable_checkpoint_cloud_logger
    enable_wandb wandb_project_name wandb_run_name managed_mldiagnostics_dir
    enable_goodput_recording monitor_goodput goodput_job_name monitor_step_time_deviation
"""
# The compile cache changes when the first step comes, not what it computes.
# A credential must neither be hashed nor decide anything.
_OTHER_KEYS = "jax_cache_dir hf_access_token"
IDENTITY_FREE_KEYS = OUTPUT_KEYS.union(_REPORTING_KEYS.split(), _OTHER_KEYS.split())
"""MaxText keys that do not change what is trained (places, reporting)."""

# Folders of caches and log files, and the level of a log that slows nothing down. MAXTEXT_ASSETS_ROOT is where this
# machine has MaxText's tokenizers; which of them is used is a key.
_PLACES = "MAXTEXT_ASSETS_ROOT JAX_COMPILATION_CACHE_DIR MIOPEN_USER_DB_PATH MIOPEN_CUSTOM_CACHE_DIR"
_LOGS = "TF_CPP_MIN_LOG_LEVEL NCCL_DEBUG_FILE AMD_LOG_LEVEL_FILE HIPBLASLT_LOG_FILE"
IDENTITY_FREE_VARIABLES = frozenset(f"{_PLACES} {_LOGS}".split())
"""Environment variables that only say where something lies or is written."""

IDENTITY_FREE_FLAGS = re.compile(r"xla_dump_.*|xla_gpu_dump_autotune_(results|logs)_to")
"""XLA flags that write down what is compiled, and do not change it."""

NOT_SET = "(not set)"
"""Stands in `list_differences` for the value of a name that one side does not have."""


def identify(keys: Mapping[str, Any], environment: Mapping[str, str], trainer: Sequence[str] | None) -> Identity:
    """Everything that decides what a run computes, and how fast.

    Args:
        keys: MaxText key -> value, plain JSON types.
        environment: variables that we set for the trainer. XLA_FLAGS counts flag by flag, so that order does not
            matter; secrets do not count, so that no hash is made of one.
        trainer: the program in MaxText's place; None for MaxText.

    Raises:
        ConfigError: XLA_FLAGS holds something that is not a flag.
    """
    variables = {
        f"platform.env.{name}": value
        for name, value in environment.items()
        if name != "XLA_FLAGS" and name not in IDENTITY_FREE_VARIABLES and not is_secret_name(name)
    }
    flags = {
        f"platform.xla_flags.{name}": value
        for name, value in parse_flags(environment.get("XLA_FLAGS", "")).items()
        if not IDENTITY_FREE_FLAGS.fullmatch(name)
    }
    program = {"run.trainer": list(trainer)} if trainer is not None else {}
    return {key: value for key, value in keys.items() if key not in IDENTITY_FREE_KEYS} | variables | flags | program


def fingerprint(identity: Identity) -> str:
    """sha256 of an identity, in hexadecimal.

    Raises:
        TypeError, ValueError: a value that JSON cannot spell the same way twice (a set, an object, NaN).
    """
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def list_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Names that make the fingerprints of two identities differ -> (value in a, value in b), sorted by name."""
    pairs = {name: (a.get(name, NOT_SET), b.get(name, NOT_SET)) for name in sorted(a.keys() | b.keys())}
    return {name: pair for name, pair in pairs.items() if _spell(pair[0]) != _spell(pair[1])}


def _spell(value: object) -> str:
    return json.dumps(value, sort_keys=True)
