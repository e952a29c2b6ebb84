"""Detection of the machine, on topology folders shaped like the KFD driver's."""

import os
from pathlib import Path

import psutil
import pytest

from primus_hydra.errors import ConfigError
from primus_hydra.platforms import Machine, decode_gfx_target, detect_machine, detect_platform, read_cgroup_limits

GIB = 2**30
MI300X = (90402, 206_141_652_992)
MI325X = (90402, 256 * GIB - 16 * 2**20)
MI355X = (90500, 288 * GIB - 16 * 2**20)
RADEON = (110003, 512 * 2**20)

ROCMINFO = """\
ROCk module is loaded
=====================
HSA Agents
=====================
*******
Agent 1
*******
  Name:                    AMD EPYC 9654 96-Core Processor
  Device Type:             CPU
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    1584909488(0x5e77c4b0) KB
*******
Agent 2
*******
  Name:                    gfx942
  Uuid:                    GPU-7c0a1d2e3f405162
  Device Type:             GPU
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    201310208(0xbffc000) KB
    Pool 2
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
*** Done ***
"""


def write_topology(folder: Path, *gpus: tuple[int, int]) -> Path:
    """A CPU node 0, then one node per GPU given as (gfx_target_version, bytes of memory)."""
    cpu = folder / "0"
    (cpu / "mem_banks" / "0").mkdir(parents=True)
    (cpu / "properties").write_text("cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n")
    (cpu / "mem_banks" / "0" / "properties").write_text("heap_type 0\nsize_in_bytes 1622947315712\nflags 0\n")
    for number, (version, memory) in enumerate(gpus, start=1):
        bank = folder / str(number) / "mem_banks" / "0"
        bank.mkdir(parents=True)
        (folder / str(number) / "properties").write_text(
            f"cpu_cores_count 0\nsimd_count 1216\nmax_waves_per_simd 8\ngfx_target_version {version}\ndevice_id 29857\n"
        )
        (bank / "properties").write_text(f"heap_type 1\nsize_in_bytes {memory}\nflags 0\nwidth 8192\n")
    return folder


@pytest.mark.parametrize(
    ("gpu", "chip", "platform"),
    [(MI300X, "gfx942", "mi300x"), (MI325X, "gfx942", "mi325x"), (MI355X, "gfx950", "mi355x")],
)
def test_eight_gpus_of_one_kind_select_their_preset(
    tmp_path: Path, gpu: tuple[int, int], chip: str, platform: str
) -> None:
    machine = detect_machine(write_topology(tmp_path, *[gpu] * 8))
    assert machine.chips == (chip,) * 8
    assert machine.device_memory_bytes == (gpu[1],) * 8
    assert detect_platform(machine) == platform


def test_more_than_nine_nodes_keep_the_drivers_order(tmp_path: Path) -> None:
    machine = detect_machine(write_topology(tmp_path, *[MI300X] * 9, MI355X))
    assert machine.chips[-1] == "gfx950"


@pytest.mark.parametrize("topology", ["missing", "cpu only"])
def test_a_machine_without_a_gpu_is_the_cpu_platform(
    tmp_path: Path, topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    folder = tmp_path / "missing" if topology == "missing" else write_topology(tmp_path)
    machine = detect_machine(folder)
    assert machine.chips == ()
    assert detect_platform(machine) == "cpu"


def test_a_gpu_that_the_container_may_not_use_is_not_counted(tmp_path: Path) -> None:
    write_topology(tmp_path, MI300X, MI300X)
    # The kernel lists every node and refuses to read the ones outside our device cgroup. A folder in the
    # file's place fails to be read for root too, which permission bits would not.
    (tmp_path / "2" / "properties").unlink()
    (tmp_path / "2" / "properties").mkdir()
    assert detect_machine(tmp_path).chips == ("gfx942",)


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ((RADEON,), ["1 x gfx1103 with 0 GiB", "no platform preset", "platform=cpu"]),
        ((MI300X, MI300X, MI355X), ["2 x gfx942 with 192 GiB", "1 x gfx950 with 288 GiB", "different kinds"]),
        (((90402, 24 * GIB),) * 64, ["64 x gfx942 with 24 GiB", "partitioned", "mi300x (gfx942, 192 GiB)"]),
        (((90402, 0),) * 8, ["8 x gfx942 (memory size not reported)"]),
    ],
)
def test_gpus_without_a_preset_are_refused_with_what_was_found(
    tmp_path: Path, gpus: tuple[tuple[int, int], ...], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as refusal:
        detect_platform(detect_machine(write_topology(tmp_path, *gpus)))
    assert [word for word in words if word not in str(refusal.value)] == []


def test_rocminfo_is_asked_where_the_driver_has_no_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rocminfo"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{ROCMINFO}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    machine = detect_machine(tmp_path / "missing")
    assert (machine.chips, machine.device_memory_bytes) == (("gfx942",), (201_310_208 * 1024,))
    assert detect_platform(machine) == "mi300x"


def test_a_failing_rocminfo_means_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rocminfo"
    program.write_text("#!/bin/sh\necho 'ROCk module is NOT loaded, possibly no GPU devices'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert detect_machine(tmp_path / "missing").chips == ()


@pytest.mark.parametrize(
    ("version", "target"),
    [(90402, "gfx942"), (90500, "gfx950"), (90010, "gfx90a"), (90008, "gfx908"), (100302, "gfx1032")],
)
def test_decode_gfx_target_spells_minor_and_stepping_in_hexadecimal(version: int, target: str) -> None:
    assert decode_gfx_target(version) == target


@pytest.mark.parametrize(
    ("line", "files", "limits"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "4096", "memory.max": "8192"}, (4096, 8192)),
        ("0::/host/only", {"memory.max": "4096"}, (4096,)),
        ("9:memory:/a", {"memory/a/memory.limit_in_bytes": "4096", "memory.max": "1"}, (4096,)),
        ("9:cpuset:/a", {"memory/memory.limit_in_bytes": "4096"}, ()),
    ],
)
def test_cgroup_limits_are_read_from_the_group_up(
    tmp_path: Path, line: str, files: dict[str, str], limits: tuple[int, ...]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "membership").write_text(f"{line}\n")
    assert read_cgroup_limits(tmp_path, tmp_path / "membership") == limits


def test_this_machine_has_cpus_and_no_more_memory_than_installed() -> None:
    machine = detect_machine()
    assert machine.num_cpus == len(os.sched_getaffinity(0))
    assert 0 < machine.memory_bytes <= psutil.virtual_memory().total
    assert isinstance(machine, Machine)
