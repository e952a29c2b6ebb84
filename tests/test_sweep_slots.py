"""Which GPUs each of the points that run at the same time gets."""

from pathlib import Path
from typing import Any

import pytest

from primus_hydra.errors import ConfigError
from primus_hydra.schema import PlatformSettings
from primus_hydra.sweep.slots import CUDA, HIP, ROCR, make_slots, visible_devices

FIRST_ID = 0xABBA_0000_0000_0000


def write_gpus(folder: Path, number: int) -> Path:
    """A topology of one CPU node and some MI300X, whose UUIDs differ in the last digit."""
    for node, (simds, unique_id) in enumerate([(0, 0), *((1216, FIRST_ID + gpu) for gpu in range(number))]):
        (folder / str(node)).mkdir(parents=True)
        (folder / str(node) / "properties").write_text(
            f"simd_count {simds}\ngfx_target_version 90402\nunique_id {unique_id}\n", encoding="ascii"
        )
    return folder


def uuid(gpu: int) -> str:
    return f"GPU-{FIRST_ID + gpu:016x}"


def rocm(**settings: Any) -> PlatformSettings:
    return PlatformSettings(**{"name": "mi300x", "jax_platform": "rocm", "devices_per_node": 2, **settings})


def cpu(devices: int = 1) -> PlatformSettings:
    return PlatformSettings(name="cpu", jax_platform="cpu", devices_per_node=devices)


def test_each_slot_has_gpus_of_its_own_counted_from_0(tmp_path: Path) -> None:
    slots = make_slots([rocm()], 3, {}, sysfs=write_gpus(tmp_path, 8))
    assert [dict(slot.env) for slot in slots] == [
        {ROCR: "0,1", HIP: "0,1"},
        {ROCR: "2,3", HIP: "0,1"},
        {ROCR: "4,5", HIP: "0,1"},
    ]
    assert [slot.name for slot in slots] == ["GPU 0,1", "GPU 2,3", "GPU 4,5"]


def test_one_point_at_a_time_sees_what_this_process_sees(tmp_path: Path) -> None:
    (slot,) = make_slots([rocm(devices_per_node=8, env={ROCR: "0"})], 1, {}, sysfs=write_gpus(tmp_path, 1))
    assert slot.env == {}
    assert slot.name == ""


def test_on_the_cpu_nothing_is_divided(tmp_path: Path) -> None:
    slots = make_slots([cpu(1), cpu(4)], 3, {ROCR: "0"}, sysfs=write_gpus(tmp_path, 1))
    assert [slot.env for slot in slots] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("environ", "devices"),
    [
        ({}, "0 1 2 3"),
        ({ROCR: "3, 1"}, "3 1"),
        ({ROCR: ""}, ""),
        ({ROCR: "-1"}, ""),
        ({ROCR: "2,9,1"}, "2"),
        ({ROCR: "2,2,1"}, "2"),
        ({ROCR: f"{uuid(3)},0"}, "3 0"),
        ({ROCR: f"{uuid(3).upper()},GPU-XX,0"}, "3"),
        ({ROCR: "GPU-abba,0"}, ""),  # the beginning of four UUIDs
        ({HIP: "1,2"}, "1 2"),
        ({HIP: ""}, "0 1 2 3"),
        ({HIP: uuid(2)}, "2"),
        ({HIP: "", CUDA: "3"}, "3"),
        ({HIP: "1", CUDA: "3"}, "1"),
        ({ROCR: "3,2,0", HIP: "2,0"}, "0 3"),
        ({ROCR: "3,2", HIP: "0,3"}, "3"),
        ({ROCR: f"{uuid(3)},1", HIP: uuid(1)}, "1"),
    ],
)
def test_what_the_environment_hides_stays_hidden(tmp_path: Path, environ: dict[str, str], devices: str) -> None:
    assert visible_devices(environ, write_gpus(tmp_path, 4)) == devices.split()


def test_slots_are_made_of_what_is_visible(tmp_path: Path) -> None:
    slots = make_slots([rocm()], 2, {ROCR: "7,5,3,1", HIP: "3,2,1,0"}, sysfs=write_gpus(tmp_path, 8))
    assert [dict(slot.env) for slot in slots] == [{ROCR: "1,3", HIP: "0,1"}, {ROCR: "5,7", HIP: "0,1"}]


def refusal(tmp_path: Path, platforms: list[PlatformSettings], max_parallel: int, environ: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        make_slots(platforms, max_parallel, environ, sysfs=write_gpus(tmp_path, 8))
    return str(raised.value)


def test_too_few_gpus_are_refused_with_the_arithmetic(tmp_path: Path) -> None:
    text = refusal(tmp_path, [rocm(devices_per_node=8)], 2, {})
    assert "sweep.max_parallel=2 points with platform.devices_per_node=8 each need 16 GPUs, but 8 are visible" in text
    assert "Write sweep.max_parallel=1, or platform.devices_per_node=4 sweep.max_parallel=2." in text


def test_the_refusal_names_what_hides_gpus_and_how_many_points_would_fit(tmp_path: Path) -> None:
    text = refusal(tmp_path, [rocm()], 8, {ROCR: "0,1,2,3,4"})
    assert "need 16 GPUs, but 5 are visible here (ROCR_VISIBLE_DEVICES=0,1,2,3,4 in the environment)" in text
    assert "Write sweep.max_parallel=2, or sweep.max_parallel=1." in text


@pytest.mark.parametrize("value", ["0,1", None])
@pytest.mark.parametrize("name", [ROCR, HIP, CUDA])
def test_settings_that_would_undo_a_slot_are_refused(tmp_path: Path, name: str, value: str | None) -> None:
    text = refusal(tmp_path, [rocm(), rocm(env={name: value})], 2, {})
    assert f"platform.env.{name}={value or 'null'} and sweep.max_parallel=2 contradict each other" in text


def test_all_contradictions_are_told_at_once(tmp_path: Path) -> None:
    text = refusal(tmp_path, [rocm(nodes=2, env={ROCR: "0"}), rocm(devices_per_node=4), cpu()], 2, {})
    assert "cannot be had with platform.nodes=2" in text
    assert "contradict each other" in text
    assert "want different devices (1 on cpu, 2 on mi300x, 4 on mi300x)" in text
