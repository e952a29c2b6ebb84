"""Mesh arithmetic: do the parallelism axes multiply to the devices that are there, and what is the global batch.

MaxText makes the same checks itself, but only after all ranks have connected (ici axes: when the mesh is
made, `max_utils.fill_unspecified_mesh_axes`; dcn axes: `types.py`, and only on one slice).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any, Literal

type Level = Literal["ici", "dcn"]
"""Axes inside a slice, and axes across slices."""

_USUAL_AXIS = {"ici": "fsdp", "dcn": "data"}
"""The axis that takes what is left in base.yml."""
_AXIS_KEYS = {"stage": "pipeline", "model": "tensor"}
"""Mesh axes whose key is spelled differently: axis `stage` is sized by `ici_pipeline_parallelism`."""
_REPLICATING_AXES = frozenset({"data", "diloco"})
"""Axes that hold whole copies of the weights instead of splitting them."""
_KEY_SUFFIX = "_parallelism"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeshProblem:
    """One way in which the axes cannot be laid over the devices."""

    level: Level
    fact: str
    allowed: str
    fix: str
    keys: tuple[str, ...]
    """The keys that take part, for the origin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeshPlan:
    """What MaxText will make of the axes, as far as it can be known beforehand."""

    num_devices: int | None
    """All devices of the run; None where the platform does not say."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Axis -> its size over all devices (inside a slice times across slices), -1 filled in; empty if not checked."""
    global_batch_size: int | None = None
    """Sequences that one optimizer step trains on; None where the devices are unknown."""
    ignored_keys: tuple[str, ...] = ()
    """Axis keys with a size that no axis of `mesh_axes` uses: they have no effect."""
    problems: tuple[MeshProblem, ...] = ()
    not_checked: str = ""
    """Why the axes were not checked; empty if they were."""

    @property
    def weight_shards(self) -> int:
        """Most pieces that the weights can be split into: every device, less what only holds copies."""
        if not self.sizes:
            return self.num_devices or 1
        return prod(size for axis, size in self.sizes.items() if axis not in _REPLICATING_AXES)


def plan_mesh(
    effective: Mapping[str, Any], *, devices_per_node: int | None, nodes: int | None, jax_platform: str
) -> MeshPlan:
    """Check the mesh axes against the devices and compute the global batch.

    Args:
        effective: every MaxText key with the value that MaxText will see.
        devices_per_node: accelerators (or CPU host devices) in one node; None: unknown.
        nodes: nodes of the run; None: unknown.
        jax_platform: `cpu` joins all nodes in one slice; a GPU node is a slice of its own.
    """
    if not devices_per_node or not nodes or devices_per_node < 1 or nodes < 1:
        return MeshPlan(num_devices=None, not_checked="the platform does not say how many devices there are")
    num_devices = devices_per_node * nodes
    batch = compute_global_batch(effective, num_devices)
    axes = effective.get("mesh_axes")
    if effective.get("custom_mesh_and_rule") or not isinstance(axes, list | tuple):
        reason = "custom_mesh_and_rule brings mesh axes of its own"
        return MeshPlan(num_devices=num_devices, global_batch_size=batch, not_checked=reason)
    num_slices = _count_slices(effective, nodes, jax_platform)
    per_slice = max(1, num_devices // num_slices)
    ici, ici_problems = _fill_axes(effective, "ici", axes, per_slice, f"the {per_slice} devices of one slice")
    dcn, dcn_problems = _fill_axes(effective, "dcn", axes, num_slices, _name_slices(num_slices))
    problems = (*ici_problems, *dcn_problems)
    sizes = {axis: ici[axis] * dcn[axis] for axis in ici} if not problems else {}
    return MeshPlan(
        num_devices=num_devices,
        sizes=sizes,
        global_batch_size=batch,
        ignored_keys=_find_ignored_keys(effective, axes),
        problems=problems,
    )


def compute_global_batch(effective: Mapping[str, Any], num_devices: int) -> int | None:
    """Sequences per optimizer step: whole sequences over all devices, times the accumulation steps.

    Source: `calculate_global_batch_sizes` in MaxText's types.py, which cuts the fraction off.
    """
    per_device, accumulation = effective.get("per_device_batch_size"), effective.get("gradient_accumulation_steps", 1)
    if not isinstance(per_device, int | float) or not isfinite(per_device) or not isinstance(accumulation, int):
        return None
    return int(num_devices * per_device) * accumulation


def axis_key(level: str, axis: str) -> str:
    """MaxText's key for the size of one mesh axis, such as `ici_fsdp_parallelism`."""
    return f"{level}_{_AXIS_KEYS.get(axis, axis)}{_KEY_SUFFIX}"


def _count_slices(effective: Mapping[str, Any], nodes: int, jax_platform: str) -> int:
    """Slices as MaxText counts them (`max_utils.get_num_slices`): one per GPU node, one for all CPU nodes."""
    asked = effective.get("num_slices")
    if isinstance(asked, int) and asked > 0:
        return asked
    return 1 if jax_platform == "cpu" else nodes


def _name_slices(num_slices: int) -> str:
    return "the one slice there is" if num_slices == 1 else f"the {num_slices} nodes"


def _fill_axes(
    effective: Mapping[str, Any], level: Level, axes: Sequence[str], target: int, target_name: str
) -> tuple[dict[str, int], list[MeshProblem]]:
    """Sizes of all axes on one level with -1 filled in, and what is wrong with them."""
    sizes = {axis: _read_size(effective, level, axis) for axis in axes}
    misfit = _describe_misfit(sizes, level, target, target_name)
    if misfit is None:
        taken = prod(size for size in sizes.values() if size != -1)
        return {axis: target // taken if size == -1 else size for axis, size in sizes.items()}, []
    problem = MeshProblem(
        level=level,
        fact=misfit[0],
        allowed=f"The product of the {level}_* axes must be {target}, for {target_name}; at most one axis may be -1.",
        fix=misfit[1],
        keys=tuple(axis_key(level, axis) for axis, size in sizes.items() if size != 1),
    )
    return {}, [problem]


def _describe_misfit(sizes: Mapping[str, int], level: Level, target: int, target_name: str) -> tuple[str, str] | None:
    """(the fact, what to write), or None where the sizes fit on the target."""
    shown = " ".join(f"{axis_key(level, axis)}={size}" for axis, size in sizes.items() if size != 1)
    free = [axis for axis, size in sizes.items() if size == -1]
    empty = [axis for axis, size in sizes.items() if size < 1 and size != -1]
    taken = prod(size for size in sizes.values() if size != -1)
    knob = "platform.devices_per_node" if level == "ici" else "platform.nodes"
    say_so = f"or say what the machine has with {knob}=<number>."
    if len(free) > 1:
        fix = f"Keep -1 on one axis and write 1 on the other, for example {axis_key(level, free[1])}=1."
        return f"{len(free)} {level}_* axes are -1: {shown}.", fix
    if empty:
        fix = f"Write {axis_key(level, empty[0])}=1 if the axis is not used, or -1 to let it take what is left."
        return f"A {level}_* axis has a size below 1: {shown}.", fix
    if free and target % taken:
        fix = f"Keep {axis_key(level, free[0])}=-1 and choose sizes for the others that divide {target}; {say_so}"
        return f"{shown} does not fit on {target_name}: the fixed axes multiply to {taken}.", fix
    if not free and taken != target:
        fix = f"Write {axis_key(level, _USUAL_AXIS[level])}=-1, which takes what the others leave; {say_so}"
        what = shown or f"Size 1 on all {level}_* axes"
        return f"{what} does not fit on {target_name}: the product is {taken}, not {target}.", fix
    return None


def _read_size(effective: Mapping[str, Any], level: str, axis: str) -> int:
    size = effective.get(axis_key(level, axis), 1)
    return size if isinstance(size, int) and not isinstance(size, bool) else 1


def _find_ignored_keys(effective: Mapping[str, Any], axes: Sequence[str]) -> tuple[str, ...]:
    used = {axis_key(level, axis) for level in ("ici", "dcn") for axis in axes}
    return tuple(
        key
        for key, size in effective.items()
        if key.endswith(_KEY_SUFFIX) and key.startswith(("ici_", "dcn_")) and key not in used
        if isinstance(size, int) and size not in (0, 1)
    )
