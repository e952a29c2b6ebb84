"""Memory arithmetic against figures that MaxText itself reported."""

from typing import Any

import pytest

from primus_hydra.capacity import MemoryNeed, estimate_memory, format_gib
from primus_hydra.mesh import plan_mesh
from tests.test_model_size import read_model


def estimate(devices: int = 8, nodes: int = 1, model: str = "llama3-8b", **keys: Any) -> MemoryNeed:
    effective = {**read_model(model), **keys}
    mesh = plan_mesh(effective, devices_per_node=devices, nodes=nodes, jax_platform="rocm")
    need = estimate_memory(effective, mesh)
    assert need is not None
    return need


def test_weights_and_optimizer_equal_the_argument_size_that_xla_reports() -> None:
    """MaxText 0.2.5 compiled llama3-8b over 8 devices with 11.22 GiB of arguments, 5.61 GiB with bf16 weights."""
    need = estimate()
    assert (need.weights_bytes + need.optimizer_bytes) / 2**30 == pytest.approx(11.22, abs=0.01)
    need = estimate(weight_dtype="bfloat16")
    assert (need.weights_bytes + need.optimizer_bytes) / 2**30 == pytest.approx(5.61, abs=0.01)


@pytest.mark.parametrize(
    ("keys", "weights", "optimizer", "gradients"),
    [
        ({}, 4, 8, 4),
        ({"weight_dtype": "bfloat16"}, 2, 4, 2),
        ({"weight_dtype": "bfloat16", "mu_dtype": "float32"}, 2, 6, 2),
        ({"opt_type": "sgd"}, 4, 0, 4),
        ({"opt_type": "muon"}, 4, 4, 4),
        ({"optimizer_memory_host_offload": True}, 4, 0, 4),
        ({"parameter_memory_host_offload": True}, 0, 8, 4),
        ({"gradient_clipping_threshold": 0.0}, 4, 8, 0),
        ({"grad_dtype": "bfloat16"}, 4, 8, 2),
    ],
)
def test_bytes_per_parameter_follow_the_keys(
    keys: dict[str, Any], weights: int, optimizer: int, gradients: int
) -> None:
    need = estimate(devices=1, **keys)
    found = (need.weights_bytes, need.optimizer_bytes, need.gradients_bytes)
    assert tuple(num_bytes / need.model.parameters for num_bytes in found) == (weights, optimizer, gradients)


def test_data_parallel_nodes_hold_copies_and_fsdp_nodes_share() -> None:
    copies, shared = estimate(nodes=2), estimate(nodes=2, dcn_data_parallelism=1, dcn_fsdp_parallelism=2)
    assert (copies.shards, shared.shards) == (8, 16)
    assert copies.total_bytes == pytest.approx(2 * shared.total_bytes, rel=1e-6)


def test_the_optimizer_may_be_spread_over_copies() -> None:
    keys: dict[str, Any] = {"ici_fsdp_parallelism": 1, "ici_data_parallelism": 8, "shard_optimizer_over_data": True}
    need = estimate(**keys)
    assert need.weights_bytes == need.model.parameters * 4
    assert need.optimizer_bytes == need.model.parameters


def test_sizes_that_are_missing_give_no_estimate() -> None:
    mesh = plan_mesh({}, devices_per_node=8, nodes=1, jax_platform="rocm")
    assert estimate_memory({}, mesh) is None


def test_the_explanation_can_be_checked_by_hand() -> None:
    assert estimate().explain() == (
        "8.03 billion parameters need 3.7 GiB for weights, 7.5 GiB for the optimizer and 3.7 GiB for gradients "
        "per device (split over 8), 15.0 GiB together, before any activation"
    )
    assert format_gib(5 * 2**20) == "5.0 MiB"
