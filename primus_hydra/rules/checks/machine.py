"""Devices: are they there, do the axes fit on them, can the model fit in them."""

import math
from collections.abc import Iterator
from typing import Any, Literal

from primus_hydra.capacity import MemoryNeed, estimate_memory, format_gib
from primus_hydra.mesh import MeshPlan, plan_mesh
from primus_hydra.rules.context import RuleContext


def find_ici_mismatch(context: RuleContext) -> Iterator[dict[str, Any]]:
    """ici_* axes that do not multiply to the devices of a slice."""
    return _list_mesh_problems(context, "ici")


def find_dcn_mismatch(context: RuleContext) -> Iterator[dict[str, Any]]:
    """dcn_* axes that do not multiply to the slices."""
    return _list_mesh_problems(context, "dcn")


def find_ignored_axes(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Sizes of axes that the mesh does not have."""
    for key in _plan(context).ignored_keys:
        yield {"key": key, "size": context.effective[key], "keys": (key,)}


def find_too_few_gpus(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Fewer GPUs here than the platform has in a node."""
    if 0 < len(context.machine.chips) < _integer(context.platform.devices_per_node):
        yield {}


def find_wrong_chip(context: RuleContext) -> Iterator[dict[str, Any]]:
    """GPUs of another kind than the platform's."""
    found = sorted(set(context.machine.chips))
    if found and context.platform.chip and context.platform.chip not in found:
        yield {"found": ", ".join(found)}


def find_missing_memory(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Less memory than weights, optimizer and gradients need, split as finely as the mesh allows."""
    mesh = _plan(context)
    need = estimate_memory(context.effective, mesh)
    if need is None or mesh.num_devices is None:
        return
    per_node = _integer(context.platform.devices_per_node)
    device_bytes = context.platform.memory_per_device_bytes
    if context.platform.jax_platform == "cpu" or not device_bytes:
        needed, available = need.total_bytes * per_node, context.machine.memory_bytes
        devices = f"{per_node} CPU device{'s' if per_node > 1 else ''}"
        what = f"this machine has {format_gib(available)} of memory for its {devices}"
    else:
        needed, available = need.total_bytes, device_bytes
        what = f"one {context.platform.chip} of platform={context.platform.name} has {format_gib(available)}"
    if needed > available > 0:
        yield {"need": need.explain(), "available": what, "more": _suggest_devices(context, need, available)}


def _suggest_devices(context: RuleContext, need: MemoryNeed, available_bytes: int) -> str:
    """How many devices would hold the run, where the platform's devices have memory of their own."""
    if context.platform.jax_platform == "cpu":
        return ""
    devices = math.ceil(need.total_bytes * need.shards / available_bytes)
    split = "platform.nodes=<number> dcn_data_parallelism=1 dcn_fsdp_parallelism=-1"
    return f"It takes at least {devices} such devices, with the weights split over all of them ({split}). "


def _plan(context: RuleContext) -> MeshPlan:
    platform = context.platform
    return plan_mesh(
        context.effective,
        devices_per_node=_integer(platform.devices_per_node),
        nodes=_integer(platform.nodes),
        jax_platform=platform.jax_platform,
    )


def _list_mesh_problems(context: RuleContext, level: Literal["ici", "dcn"]) -> Iterator[dict[str, Any]]:
    for problem in _plan(context).problems:
        if problem.level == level:
            yield {
                "fact": problem.fact,
                "mesh_allowed": problem.allowed,
                "mesh_fix": problem.fix,
                "keys": problem.keys,
            }


def _integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
