"""Mesh arithmetic against declared devices."""

from typing import Any

import pytest

from primus_hydra.mesh import MeshPlan, compute_global_batch, plan_mesh

_AXES = ["diloco", "data", "stage", "fsdp", "context", "tensor", "tensor_sequence", "expert"]


def plan(devices: int | None, nodes: int = 1, jax_platform: str = "rocm", **keys: Any) -> MeshPlan:
    defaults = {
        "mesh_axes": _AXES,
        "dcn_data_parallelism": -1,
        "ici_fsdp_parallelism": -1,
        "per_device_batch_size": 4.0,
    }
    return plan_mesh({**defaults, **keys}, devices_per_node=devices, nodes=nodes, jax_platform=jax_platform)


@pytest.mark.parametrize(
    ("devices", "nodes", "keys", "levels"),
    [
        (8, 1, {}, []),
        (8, 1, {"ici_fsdp_parallelism": 8}, []),
        (4, 1, {"ici_fsdp_parallelism": 8}, ["ici"]),
        (1, 1, {"ici_fsdp_parallelism": 8}, ["ici"]),
        (8, 1, {"ici_fsdp_parallelism": 4}, ["ici"]),
        (8, 1, {"ici_fsdp_parallelism": 8, "ici_tensor_sequence_parallelism": -1}, []),
        (8, 1, {"ici_tensor_parallelism": 3}, ["ici"]),
        (8, 1, {"ici_tensor_parallelism": -1}, ["ici"]),
        (8, 1, {"ici_tensor_parallelism": 0}, ["ici"]),
        (8, 1, {"dcn_fsdp_parallelism": 2}, ["dcn"]),
        (8, 2, {"dcn_fsdp_parallelism": 2}, []),
        (8, 2, {"dcn_data_parallelism": 1}, ["dcn"]),
        (8, 1, {"dcn_fsdp_parallelism": -1}, ["dcn"]),
        (4, 1, {"ici_fsdp_parallelism": 8, "dcn_fsdp_parallelism": 2}, ["ici", "dcn"]),
    ],
)
def test_axes_must_multiply_to_the_devices_and_nodes(
    devices: int, nodes: int, keys: dict[str, Any], levels: list[str]
) -> None:
    found = plan(devices, nodes, **keys)
    assert [problem.level for problem in found.problems] == levels
    assert all("=" in problem.fix for problem in found.problems)


def test_the_message_names_the_axes_the_product_and_the_devices() -> None:
    problem = plan(4, ici_fsdp_parallelism=8).problems[0]
    assert problem.fact == "ici_fsdp_parallelism=8 does not fit on the 4 devices of one slice: the product is 8, not 4."
    assert "ici_fsdp_parallelism=-1" in problem.fix
    assert problem.keys == ("ici_fsdp_parallelism",)


def test_cpu_processes_share_one_slice() -> None:
    assert plan(4, 2, "cpu", ici_fsdp_parallelism=8).problems == ()
    assert [problem.level for problem in plan(4, 2, "cpu", dcn_fsdp_parallelism=2).problems] == ["dcn"]


def test_a_free_axis_takes_what_is_left() -> None:
    found = plan(8, 2, ici_tensor_parallelism=2)
    assert (found.sizes["fsdp"], found.sizes["tensor"], found.sizes["data"]) == (4, 2, 2)
    assert found.num_devices == 16
    assert found.weight_shards == 8


@pytest.mark.parametrize(
    ("per_device", "devices", "accumulation", "batch"), [(4, 8, 1, 32), (0.5, 8, 1, 4), (0.5, 1, 1, 0), (2.0, 4, 3, 24)]
)
def test_the_global_batch_is_cut_to_whole_sequences(
    per_device: float, devices: int, accumulation: int, batch: int
) -> None:
    keys: dict[str, Any] = {"per_device_batch_size": per_device, "gradient_accumulation_steps": accumulation}
    assert compute_global_batch(keys, devices) == batch
    assert plan(devices, **keys).global_batch_size == batch


def test_unknown_devices_are_said_to_be_unchecked() -> None:
    found = plan(None, ici_fsdp_parallelism=8)
    assert found.not_checked
    assert found.problems == ()
    assert found.global_batch_size is None


def test_custom_axes_are_said_to_be_unchecked_but_the_batch_is_known() -> None:
    found = plan(8, custom_mesh_and_rule="pure-fsdp")
    assert found.not_checked
    assert found.problems == ()
    assert found.global_batch_size == 32


def test_a_size_on_an_axis_that_the_mesh_lacks_is_reported_as_ignored() -> None:
    assert plan(8, ici_sequence_parallelism=8).ignored_keys == ("ici_sequence_parallelism",)
    assert plan(8, ici_sequence_parallelism=1).ignored_keys == ()
