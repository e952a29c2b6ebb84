"""The GPUs of this machine, shared out among the points of a sweep that run at the same time.

ROCm hides devices in two layers. ROCR_VISIBLE_DEVICES picks physical devices, by index or UUID; HIP_VISIBLE_DEVICES
(CUDA_VISIBLE_DEVICES where that is empty) picks from what is left and counts it anew from 0. JAX sees what HIP shows.
So a slot names its physical devices in the first variable and all of them, 0 to n-1, in the second, as JAX's own tests
do. Sources: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html, ROCr's amd_filter_device.cpp,
ROCclr's rocdevice.cpp (Device::init), https://github.com/jax-ml/jax/pull/37054, https://github.com/jax-ml/jax/pull/38205
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from primus_hydra.errors import ConfigError, Problem
from primus_hydra.platforms import KFD_NODES, detect_machine, read_gpu_uuids
from primus_hydra.schema import PlatformSettings

ROCR = "ROCR_VISIBLE_DEVICES"
HIP = "HIP_VISIBLE_DEVICES"
CUDA = "CUDA_VISIBLE_DEVICES"
_SHORTEST_UUID = 5
"""ROCr takes the beginning of a UUID for the whole, from `GPU-` and one digit on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A place for one running point."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that show the run its own devices and no others; empty where there is nothing to divide."""

    @property
    def name(self) -> str:
        """Its devices, for people: `GPU 0,3`; empty where it has none of its own."""
        return f"GPU {self.env[ROCR]}" if ROCR in self.env else ""


def make_slots(
    platforms: Sequence[PlatformSettings],
    max_parallel: int,
    environ: Mapping[str, str],
    *,
    sysfs: Path = KFD_NODES,
) -> list[Slot]:
    """One slot for each point that may run at the same time.

    Args:
        platforms: of all points.
        max_parallel: `sweep.max_parallel`, at least 1.
        environ: this process's environment: what it hides from us stays hidden.
        sysfs: the KFD driver's topology folder.

    Returns:
        `max_parallel` slots. A single one sets nothing, and on the CPU none does. On a ROCm platform each has
        `platform.devices_per_node` GPUs that no other slot has.

    Raises:
        ConfigError: the machine has too few GPUs, or the settings say something else about them. All problems at once.
    """
    rocm = [platform for platform in platforms if platform.jax_platform != "cpu"]
    if max_parallel == 1 or not rocm:
        return [Slot()] * max_parallel
    if problems := [*_check_nodes(rocm, max_parallel), *_check_env(rocm, max_parallel), *_check_sizes(platforms)]:
        raise ConfigError(problems)
    size = rocm[0].devices_per_node
    devices = visible_devices(environ, sysfs)
    if len(devices) < size * max_parallel:
        raise ConfigError([_too_few(devices, size, max_parallel, environ)])
    groups = [devices[start : start + size] for start in range(0, size * max_parallel, size)]
    # The second variable always: what was inherited there counted other devices.
    return [Slot(env={ROCR: ",".join(group), HIP: ",".join(map(str, range(size)))}) for group in groups]


def visible_devices(environ: Mapping[str, str], sysfs: Path = KFD_NODES) -> list[str]:
    """The GPUs that a process with this environment sees, as indices for ROCR_VISIBLE_DEVICES, in its order."""
    uuids = read_gpu_uuids(sysfs)
    # Without the KFD topology the count is rocminfo's, which has obeyed ROCR_VISIBLE_DEVICES already.
    physical = [str(number) for number in range(len(uuids) or len(detect_machine(sysfs).chips))]
    if ROCR in environ:  # set and empty hides all
        physical = _select(environ[ROCR], physical, uuids)
    if chosen := environ.get(HIP) or environ.get(CUDA):  # set and empty is as good as not set
        return _select(chosen, physical, [uuids[int(index)] for index in physical] if uuids else [])
    return physical


def _select(tokens: str, devices: Sequence[str], uuids: Sequence[str]) -> list[str]:
    """The devices that a list names. It ends, as for ROCm, at the first word that names none or one a second time."""
    chosen: list[str] = []
    for token in (word.strip().upper() for word in tokens.split(",")):
        named = _find(token, devices, uuids)
        if named is None or named in chosen:
            break
        chosen.append(named)
    return chosen


def _find(token: str, devices: Sequence[str], uuids: Sequence[str]) -> str | None:
    if token.isdecimal():
        return devices[int(token)] if int(token) < len(devices) else None
    if len(token) < _SHORTEST_UUID or not token.startswith("GPU-"):
        return None
    found = [device for device, uuid in zip(devices, uuids, strict=False) if uuid.startswith(token)]
    return found[0] if len(found) == 1 else None


def _check_nodes(platforms: Iterable[PlatformSettings], max_parallel: int) -> list[Problem]:
    nodes = max(platform.nodes for platform in platforms)
    if nodes == 1:
        return []
    return [
        Problem(
            what=f"sweep.max_parallel={max_parallel} cannot be had with platform.nodes={nodes}: every point spans "
            "whole nodes.",
            allowed="Only points that fit into one node can share it.",
            fix="Write sweep.max_parallel=1.",
        )
    ]


def _check_env(platforms: Iterable[PlatformSettings], max_parallel: int) -> list[Problem]:
    names = {name: platform.env[name] for platform in platforms for name in (ROCR, HIP, CUDA) if name in platform.env}
    return [
        Problem(
            what=f"platform.env.{name}={'null' if value is None else value} and sweep.max_parallel={max_parallel} "
            "contradict each other: it would give all points the same GPUs.",
            allowed="With sweep.max_parallel above 1 every point is shown GPUs of its own.",
            fix=f"Leave platform.env.{name} out. To keep the whole sweep to some GPUs, set {name} in the shell before "
            "the command; or write sweep.max_parallel=1.",
        )
        for name, value in names.items()
    ]


def _check_sizes(platforms: Iterable[PlatformSettings]) -> list[Problem]:
    sizes = sorted({(platform.name, platform.devices_per_node) for platform in platforms})
    if len(sizes) == 1:
        return []
    listing = ", ".join(f"{devices} on {name}" for name, devices in sizes)
    return [
        Problem(
            what=f"The points of this sweep want different devices ({listing}), so they cannot run side by side.",
            allowed="With sweep.max_parallel above 1 all points have one platform and one platform.devices_per_node.",
            fix="Write sweep.max_parallel=1, or start one sweep for each.",
        )
    ]


def _too_few(devices: Sequence[str], size: int, max_parallel: int, environ: Mapping[str, str]) -> Problem:
    limits = [f"{name}={environ[name]}" for name in (ROCR, HIP, CUDA) if name in environ]
    there = f"{len(devices)} {'is' if len(devices) == 1 else 'are'} visible here"
    if limits:
        there += f" ({', '.join(limits)} in the environment)"
    fixes = ["sweep.max_parallel=1"]
    if (fitting := len(devices) // size) > 1:
        fixes.insert(0, f"sweep.max_parallel={fitting}")
    if smaller := len(devices) // max_parallel:
        fixes.append(f"platform.devices_per_node={smaller} sweep.max_parallel={max_parallel}")
    return Problem(
        what=f"sweep.max_parallel={max_parallel} points with platform.devices_per_node={size} each need "
        f"{max_parallel * size} GPUs, but {there}.",
        allowed="Every point that runs at the same time has GPUs of its own.",
        fix=f"Write {', or '.join(fixes)}.",
    )
