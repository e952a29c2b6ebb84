"""What machine is this: GPUs, host memory, CPUs; and which platform preset fits it.

Nothing here imports jax or needs ROCm: the kernel's KFD driver lists every AMD GPU in sysfs, and a
container that was not given a GPU cannot read that GPU's entry.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from primus_hydra.errors import ConfigError, Problem

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_PLATFORMS = {"mi300x": ("gfx942", 192), "mi325x": ("gfx942", 256), "mi355x": ("gfx950", 288)}
"""Platform preset -> LLVM target and GiB of one whole GPU (not a partition of it)."""
_MEMORY_TOLERANCE = 0.05
"""The driver keeps some of the memory for itself, so what it reports is a little under the data sheet."""
_VRAM_HEAPS = {"1", "2"}
"""KFD's heap_type of device memory: frame buffer, public (1) or private (2); 0 is system memory."""
_ROCMINFO_TIMEOUT_S = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine that this process runs on."""

    chips: tuple[str, ...]
    """LLVM targets such as `gfx942`, one entry per GPU that we may use."""
    device_memory_bytes: tuple[int, ...]
    """Memory of each GPU, bytes, in the order of `chips`; 0 where the driver does not say."""
    num_cpus: int
    """CPUs that this process may be scheduled on."""
    memory_bytes: int
    """Host memory, bytes: what is installed, or the cgroup's limit if that is lower."""
    transformer_engine: bool
    """Whether Transformer Engine is installed in this Python environment."""


def detect_machine(sysfs: Path = KFD_NODES) -> Machine:
    """Look at the machine; takes a few milliseconds and never fails.

    Args:
        sysfs: the KFD driver's topology folder, one subfolder per CPU socket or GPU.
    """
    gpus = _read_kfd(sysfs) or _ask_rocminfo()
    return Machine(
        chips=tuple(chip for chip, _ in gpus),
        device_memory_bytes=tuple(memory for _, memory in gpus),
        num_cpus=len(os.sched_getaffinity(0)),
        memory_bytes=min(psutil.virtual_memory().total, *read_cgroup_limits()),
        transformer_engine=importlib.util.find_spec("transformer_engine") is not None,
    )


def detect_platform(machine: Machine) -> str:
    """Name of the `platform` group that fits: `mi300x`, `mi325x`, `mi355x`, or `cpu` without a GPU.

    Raises:
        ConfigError: the GPUs are of a kind without a preset, or of different kinds.
    """
    gpus = list(zip(machine.chips, machine.device_memory_bytes, strict=True))
    found = {gpu: _match_platform(*gpu) for gpu in gpus}
    names = set(found.values())
    if not names:
        return "cpu"
    if len(names) == 1 and (name := names.pop()) is not None:
        return name
    listing = ", ".join(f"{gpus.count(gpu)} x {_describe(*gpu)}" for gpu in found)
    raise ConfigError([_unknown_gpus(listing, mixed=len(set(found.values())) > 1)])


def decode_gfx_target(version: int) -> str:
    """KFD's decimal `gfx_target_version` as an LLVM target: 90402 -> gfx942, 90010 -> gfx90a.

    Source: the kernel's kfd_device.c writes major * 10000 + minor * 100 + stepping; LLVM spells
    minor and stepping as one hexadecimal digit each.
    """
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def read_cgroup_limits(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> tuple[int, ...]:
    """Memory limits, bytes, of this process's cgroup and every cgroup above it, version 1 or 2.

    Inside a container the path in `membership` may be the host's and not exist below `root`, while
    `root` itself is the container's own cgroup; so both ends are read and what is missing is skipped.
    """
    limits: list[int] = []
    for line in _read_text(membership).splitlines():
        controllers, path = line.split(":", 2)[1:]
        if controllers not in ("", "memory"):
            continue
        base, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            text = _read_text(folder / name).strip()
            if text.isdecimal():
                limits.append(int(text))
            if folder == base:
                break
    return tuple(limits)


def read_gpu_uuids(sysfs: Path = KFD_NODES) -> tuple[str, ...]:
    """ROCm's UUID (`GPU-` and 16 hexadecimal digits) of every GPU, in the order of `Machine.chips`.

    An empty text where the GPU has none; nothing at all on systems without the KFD topology. Source: ROCr's
    amd_filter_device.cpp spells KFD's `unique_id` so.
    """
    numbers = (int(properties.get("unique_id", 0)) for _, properties in _list_gpu_nodes(sysfs))
    return tuple(f"GPU-{number:016X}" if number else "" for number in numbers)


def _read_kfd(sysfs: Path) -> list[tuple[str, int]]:
    """(LLVM target, memory in bytes) of every readable GPU node, in the driver's order."""
    gpus = []
    for node, properties in _list_gpu_nodes(sysfs):
        banks = [_read_properties(bank) for bank in sorted(node.glob("mem_banks/*/properties"))]
        memory = sum(int(bank["size_in_bytes"]) for bank in banks if bank.get("heap_type") in _VRAM_HEAPS)
        gpus.append((decode_gfx_target(int(properties.get("gfx_target_version", 0))), memory))
    return gpus


def _list_gpu_nodes(sysfs: Path) -> list[tuple[Path, dict[str, str]]]:
    """Every readable GPU node with its properties, in the driver's order."""
    try:
        names = [node.name for node in sysfs.iterdir() if node.name.isdecimal()]
    except OSError:
        return []
    nodes = [(sysfs / name, _read_properties(sysfs / name / "properties")) for name in sorted(names, key=int)]
    return [(node, properties) for node, properties in nodes if int(properties.get("simd_count", 0)) > 0]


def _read_properties(path: Path) -> dict[str, str]:
    """KFD's `name value` lines; empty where we may not read, which is how a device cgroup hides a GPU."""
    fields = (line.split() for line in _read_text(path).splitlines())
    return {field[0]: field[1] for field in fields if len(field) == 2}


def _ask_rocminfo() -> list[tuple[str, int]]:
    """The same from ROCm's `rocminfo`, for systems without the KFD topology such as WSL."""
    program = shutil.which("rocminfo")
    if program is None:
        return []
    try:
        answer = subprocess.run([program], capture_output=True, text=True, timeout=_ROCMINFO_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    gpus = []
    for agent in re.split(r"^\*+\s*\nAgent \d+\s*\n\*+", answer.stdout, flags=re.MULTILINE)[1:]:
        name = re.search(r"^\s*Name:\s*(gfx[0-9a-f]+)\s*$", agent, flags=re.MULTILINE)
        if name:
            pools_kb = [
                int(size) for size in re.findall(r"^\s*Size:\s*(\d+)\(0x[0-9a-f]+\) KB", agent, flags=re.MULTILINE)
            ]
            gpus.append((name[1], max(pools_kb, default=0) * 1024))
    return gpus


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _match_platform(chip: str, memory_bytes: int) -> str | None:
    for name, (known_chip, memory_gib) in _PLATFORMS.items():
        if chip == known_chip and abs(memory_bytes / 2**30 / memory_gib - 1) <= _MEMORY_TOLERANCE:
            return name
    return None


def _describe(chip: str, memory_bytes: int) -> str:
    return f"{chip} with {memory_bytes / 2**30:.0f} GiB" if memory_bytes else f"{chip} (memory size not reported)"


def _unknown_gpus(listing: str, *, mixed: bool) -> Problem:
    presets = ", ".join(f"{name} ({chip}, {gib} GiB)" for name, (chip, gib) in _PLATFORMS.items())
    fact = "which are of different kinds" if mixed else "for which there is no platform preset"
    return Problem(
        what=f"platform=auto found {listing}, {fact}.",
        allowed=f"Presets exist for one GPU kind at a time: {presets}, and cpu.",
        fix="Write platform=<the closest preset> with platform.devices_per_node and platform.memory_per_device_bytes "
        "of this machine (a partitioned GPU shows as several small ones), or platform=cpu to leave the GPUs alone.",
    )
