"""Lower bounds on the memory of a training run, by arithmetic alone: can it possibly fit?

Nothing is compiled and nothing is imported. Only what must be in memory at the end of a step is counted
(weights, optimizer state, gradients), split as finely as the mesh can; activations come on top. So "does not
fit" is certain, "fits" is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from primus_hydra.mesh import MeshPlan
from primus_hydra.model_size import ModelSize, count_parameters

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
_MOMENTS = {"adamw": ("mu", "nu"), "adam_pax": ("nu", "nu"), "muon": ("mu",), "sgd": ()}
"""Optimizer -> moments it keeps. adamw's mu has `mu_dtype`; nu has the weights' type (MaxText optimizers.py)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryNeed:
    """Bytes of one device that a run needs at least."""

    model: ModelSize
    shards: int
    """Devices over which the weights are split."""
    weights_bytes: int
    optimizer_bytes: int
    gradients_bytes: int

    @property
    def total_bytes(self) -> int:
        """Everything that is in one device's memory at the same time, activations left out."""
        return self.weights_bytes + self.optimizer_bytes + self.gradients_bytes

    def explain(self) -> str:
        """The arithmetic as one sentence, for a person who wants to check it."""
        bound = "at least " if self.model.is_lower_bound else ""
        parts = (self.weights_bytes, self.optimizer_bytes, self.gradients_bytes)
        weights, optimizer, gradients = (format_gib(part) for part in parts)
        return (
            f"{bound}{self.model.parameters / 1e9:.2f} billion parameters need {weights} for weights, {optimizer} for "
            f"the optimizer and {gradients} for gradients per device (split over {self.shards}), "
            f"{format_gib(self.total_bytes)} together, before any activation"
        )


def estimate_memory(effective: Mapping[str, Any], mesh: MeshPlan) -> MemoryNeed | None:
    """Lower bound on the bytes per device; None where the model's sizes are not known.

    Args:
        effective: every MaxText key with the value that MaxText will see.
        mesh: the plan of the same configuration; its devices bound how finely weights can be split.
    """
    model = count_parameters(effective)
    if model is None:
        return None
    weight_bytes = _BYTES.get(str(effective.get("weight_dtype")), 1)
    mu_bytes = _BYTES.get(str(effective.get("mu_dtype")), weight_bytes)
    moments = _MOMENTS.get(str(effective.get("opt_type")), ())
    moment_bytes = sum(mu_bytes if moment == "mu" else weight_bytes for moment in moments)
    shards = max(1, mesh.weight_shards)
    optimizer_shards = max(shards, mesh.num_devices or 1) if effective.get("shard_optimizer_over_data") else shards
    return MemoryNeed(
        model=model,
        shards=shards,
        weights_bytes=_on_device(effective, "parameter", model.parameters * weight_bytes // shards),
        optimizer_bytes=_on_device(effective, "optimizer", model.parameters * moment_bytes // optimizer_shards),
        gradients_bytes=_count_gradient_bytes(effective, model.parameters, weight_bytes) // shards,
    )


def _on_device(effective: Mapping[str, Any], what: str, num_bytes: int) -> int:
    """Nothing of what MaxText keeps in host memory (`*_memory_host_offload`) counts against the device."""
    return 0 if effective.get(f"{what}_memory_host_offload") else num_bytes


def _count_gradient_bytes(effective: Mapping[str, Any], parameters: int, weight_bytes: int) -> int:
    """Gradients exist all at once only where their global norm is needed; else XLA may free each one early."""
    clipping = effective.get("gradient_clipping_threshold")
    if not isinstance(clipping, int | float) or clipping <= 0:
        return 0
    return parameters * min(weight_bytes, _BYTES.get(str(effective.get("grad_dtype")), 1))


def format_gib(num_bytes: float) -> str:
    """Bytes as GiB with one decimal, or MiB where that would read 0.0."""
    return f"{num_bytes / 2**30:.1f} GiB" if num_bytes >= 2**30 / 10 else f"{num_bytes / 2**20:.1f} MiB"
