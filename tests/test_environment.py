"""The child's environment, layer by layer and chip by chip."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from primus_hydra.environment import Environment, layer_environment
from primus_hydra.errors import ConfigError, format_problems
from primus_hydra.paths import conf_dir
from primus_hydra.redaction import split_secrets
from primus_hydra.schema import PlatformSettings
from primus_hydra.xla_flags import parse_flags

ASSETS = Path(__file__).parent
EIGHT_FLAGS: dict[str, str | None] = {
    "xla_gpu_memory_limit_slop_factor": "95",
    "xla_gpu_reduce_scatter_combine_threshold_bytes": "8589934592",
    "xla_gpu_all_gather_combine_threshold_bytes": "8589934592",
    "xla_gpu_enable_command_buffer": "''",
    "xla_gpu_enable_latency_hiding_scheduler": "true",
    "xla_gpu_enable_triton_gemm": "false",
    "xla_gpu_enable_cublaslt": "true",
    "xla_gpu_enable_all_gather_combine_by_dim": "false",
}


def gpu(**changes: object) -> PlatformSettings:
    """Settings like those of the MI300X preset, small enough to read."""
    values = {
        "name": "mi300x",
        "chip": "gfx942",
        "jax_platform": "rocm",
        "devices_per_node": 8,
        "fp8": "nanoo_fp8",
        "env": {"HSA_NO_SCRATCH_RECLAIM": "1", "GPU_MAX_HW_QUEUES": "2", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".97"},
        "xla_flags": {"xla_gpu_autotune_level": "4", **EIGHT_FLAGS},
    }
    return PlatformSettings(**{**values, **changes})  # type: ignore[arg-type]


def cpu(**changes: object) -> PlatformSettings:
    values = {"name": "cpu", "jax_platform": "cpu", "devices_per_node": 1, "fp8": "fp8"}
    return PlatformSettings(**{**values, **changes})  # type: ignore[arg-type]


def layer(
    platform: PlatformSettings,
    inherited: dict[str, str] | None = None,
    image: dict[str, str] | None = None,
    env: frozenset[str] = frozenset(),
    flags: frozenset[str] = frozenset(),
) -> Environment:
    return layer_environment(
        platform,
        explicit_env=env,
        explicit_flags=flags,
        inherited=inherited or {},
        image=image or {},
        maxtext_assets=ASSETS,
    )


def apply(environment: Environment, inherited: dict[str, str]) -> dict[str, str]:
    child = {**inherited, **environment.set}
    return {name: value for name, value in child.items() if name not in environment.unset}


def told(environment: Environment) -> str:
    return format_problems(environment.notes)


def test_each_layer_decides_about_its_own_variable() -> None:
    environment = layer(
        gpu(env={"TYPED": "typed", "SHELL": "preset", "BAKED": "preset", "PRESET": "preset"}),
        inherited={"TYPED": "shell", "SHELL": "shell", "BAKED": "image", "JAX_LOG_COMPILES": "1", "NCCL_DEBUG": "WARN"},
        image={"BAKED": "image", "NCCL_DEBUG": "WARN", "SHELL": "image"},
        env=frozenset({"TYPED"}),
    )
    expected = {"TYPED": "typed", "SHELL": "shell", "BAKED": "preset", "PRESET": "preset", "JAX_LOG_COMPILES": "1"}
    assert {name: environment.set[name] for name in expected} == expected
    assert environment.inherited == {"NCCL_DEBUG": "WARN"}
    sources = ["command line or experiment", "shell", "platform mi300x", "platform mi300x", "shell"]
    assert [environment.sources[name] for name in expected] == sources
    assert environment.sources["NCCL_DEBUG"] == "container image"


def test_xla_flags_merge_flag_by_flag() -> None:
    baked = "--xla_gpu_autotune_level=0 --xla_dump_hlo_as_text=true"
    environment = layer(
        gpu(xla_flags={"xla_gpu_autotune_level": "5", **EIGHT_FLAGS}),
        inherited={"XLA_FLAGS": f"{baked} --xla_gpu_enable_triton_gemm=true"},
        image={"XLA_FLAGS": baked},
        flags=frozenset({"xla_gpu_autotune_level"}),
    )
    assert parse_flags(environment.set["XLA_FLAGS"]) == {
        "xla_gpu_autotune_level": "5",
        "xla_dump_hlo_as_text": "true",
        **EIGHT_FLAGS,
        "xla_gpu_enable_triton_gemm": "true",
    }
    assert environment.sources["XLA_FLAGS:xla_gpu_autotune_level"] == "command line or experiment"
    assert environment.sources["XLA_FLAGS:xla_dump_hlo_as_text"] == "container image"
    assert environment.sources["XLA_FLAGS:xla_gpu_enable_triton_gemm"] == "shell"
    assert environment.sources["XLA_FLAGS:xla_gpu_enable_cublaslt"] == "platform mi300x"


def test_a_flag_set_to_null_is_removed_and_the_others_stay() -> None:
    environment = layer(
        gpu(xla_flags={"xla_a": None, "xla_b": "1"}),
        inherited={"XLA_FLAGS": "--xla_a=2 --xla_c"},
        flags=frozenset({"xla_a"}),
    )
    assert environment.set["XLA_FLAGS"] == "--xla_c --xla_b=1"


def test_the_real_child_gets_the_layered_environment(tmp_path: Path) -> None:
    inherited = {"PATH": os.environ["PATH"], "M_STEPS": "7", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": '--xla_keep="a b"'}
    environment = layer(gpu(env={"NVTE_FUSED_ATTN": "1", "PATH": None}), inherited, env=frozenset({"PATH"}))
    stub = tmp_path / "print_environment.py"
    stub.write_text("import json, os\nprint(json.dumps(dict(os.environ)))\n")
    child = subprocess.run(
        [sys.executable, str(stub)], env=apply(environment, inherited), capture_output=True, text=True, check=True
    )
    seen = json.loads(child.stdout)
    assert seen.keys() & {"M_STEPS", "PATH"} == set()
    assert (seen["JAX_PLATFORMS"], seen["NVTE_FUSED_ATTN"]) == ("rocm", "1")
    assert parse_flags(seen["XLA_FLAGS"])["xla_keep"] == '"a b"'
    assert seen["XLA_FLAGS"].count("xla_gpu_autotune_level") == 1


NAMES = st.sampled_from(["xla_a", "xla_b", "xla_c", "xla_force_host_platform_device_count"])
FLAGS = st.dictionaries(NAMES, st.sampled_from(["1", "2", "''", '""', "", '"a b"']), max_size=4)


@given(
    inherited=FLAGS,
    image=FLAGS,
    wanted=st.dictionaries(NAMES, st.sampled_from([None, "1", "''", "a b"]), max_size=4),
    explicit=st.frozensets(NAMES),
    make=st.sampled_from([gpu, cpu]),
)
def test_layering_the_result_again_changes_nothing(
    inherited: dict[str, str],
    image: dict[str, str],
    wanted: dict[str, str | None],
    explicit: frozenset[str],
    make: Callable[..., PlatformSettings],
) -> None:
    def write(flags: dict[str, str]) -> dict[str, str]:
        return {"XLA_FLAGS": " ".join(f"--{name}={value}" for name, value in flags.items())}

    platform = make(xla_flags=wanted)
    once = apply(layer(platform, write(inherited), write(image), flags=explicit), write(inherited))
    assert apply(layer(platform, once, write(image), flags=explicit), once) == once
    assert once["XLA_FLAGS"]


@pytest.mark.parametrize("platform", [gpu(xla_flags={}), cpu()])
@pytest.mark.parametrize("inherited", [{}, {"XLA_FLAGS": ""}, {"XLA_FLAGS": " "}])
def test_xla_flags_are_never_empty_since_maxtext_would_fill_them(
    platform: PlatformSettings, inherited: dict[str, str]
) -> None:
    assert layer(platform, inherited).set["XLA_FLAGS"] == "--xla_force_host_platform_device_count=1"


def test_the_cpu_has_the_devices_that_the_platform_says_whatever_the_shell_says() -> None:
    environment = layer(
        cpu(devices_per_node=4),
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_NUM_CPU_DEVICES": "2"},
    )
    assert environment.set["XLA_FLAGS"] == "--xla_force_host_platform_device_count=4"
    assert "JAX_NUM_CPU_DEVICES" in environment.unset
    assert "platform.devices_per_node=N" in told(environment)


def test_the_platform_decides_the_backend_so_that_a_missing_one_fails() -> None:
    environment = layer(gpu(), {"JAX_PLATFORMS": "", "JAX_PLATFORM_NAME": "cpu"})
    assert environment.set["JAX_PLATFORMS"] == "rocm"
    assert "JAX_PLATFORM_NAME" in environment.unset
    assert "JAX_PLATFORMS= in the environment contradicts platform mi300x; the run uses JAX_PLATFORMS=rocm" in told(
        environment
    )
    typed = layer(gpu(env={"JAX_PLATFORMS": "rocm,cpu"}), {"JAX_PLATFORMS": "cpu"}, env=frozenset({"JAX_PLATFORMS"}))
    assert typed.set["JAX_PLATFORMS"] == "rocm,cpu"


@pytest.mark.parametrize(
    ("env", "explicit", "inherited", "image", "name", "value"),
    [
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".97"}, set(), {"XLA_CLIENT_MEM_FRACTION": ".5"}, {}, "new", ".5"),
        ({"XLA_CLIENT_MEM_FRACTION": ".97"}, set(), {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}, {}, "old", ".5"),
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".97"},
            set(),
            {"XLA_CLIENT_MEM_FRACTION": ".5"},
            {"XLA_CLIENT_MEM_FRACTION": ".5"},
            "old",
            ".97",
        ),
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".97", "XLA_CLIENT_MEM_FRACTION": ".9"},
            {"XLA_CLIENT_MEM_FRACTION"},
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
            {},
            "new",
            ".9",
        ),
        ({}, set(), {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".6", "XLA_CLIENT_MEM_FRACTION": ".5"}, {}, "new", ".5"),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".97"}, set(), {"XLA_CLIENT_MEM_FRACTION": ""}, {}, "old", ".97"),
    ],
)
def test_one_spelling_of_the_memory_fraction_is_left(
    env: dict[str, str | None],
    explicit: set[str],
    inherited: dict[str, str],
    image: dict[str, str],
    name: str,
    value: str,
) -> None:
    child = apply(layer(gpu(env=env), inherited, image, env=frozenset(explicit)), inherited)
    spellings = {"old": "XLA_PYTHON_CLIENT_MEM_FRACTION", "new": "XLA_CLIENT_MEM_FRACTION"}
    assert {key: child[full] for key, full in spellings.items() if child.get(full)} == {name: value}


def test_variables_that_would_change_maxtext_keys_are_removed_and_left_to_the_rule_to_tell() -> None:
    environment = layer(gpu(), {"M_STEPS": "7", "M_STEPZ": "9", "M_": "x", "m_steps": "3", "HOMEM_STEPS": "1"})
    assert environment.unset == ("M_STEPS", "M_STEPZ")
    assert "M_STEP" not in told(environment)


def test_leftovers_of_another_session_are_removed() -> None:
    leftovers = {"JAX_COORDINATOR_IP": "10.0.0.1", "JAX_COORDINATOR_PORT": "1234", "JAX_COMPILATION_CACHE_DIR": "/c"}
    assert layer(gpu(), leftovers).unset == tuple(sorted(leftovers))
    several = layer(gpu(nodes=2), leftovers)
    assert several.unset == ("JAX_COMPILATION_CACHE_DIR",)
    assert several.inherited["JAX_COORDINATOR_IP"] == "10.0.0.1"
    assert "JAX_COORDINATOR_IP" not in several.set


def test_per_node_variables_are_recorded_but_not_carried_to_another_node() -> None:
    environment = layer(gpu(), {"HIP_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "0"})
    assert environment.inherited == {"HIP_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "0"}
    assert environment.set.keys() & environment.inherited.keys() == set()


def test_the_assets_folder_exists(tmp_path: Path) -> None:
    assert layer(cpu()).set["MAXTEXT_ASSETS_ROOT"] == str(ASSETS)
    assert layer(cpu(), {"MAXTEXT_ASSETS_ROOT": str(tmp_path)}).set["MAXTEXT_ASSETS_ROOT"] == str(tmp_path)
    gone = layer(cpu(), {"MAXTEXT_ASSETS_ROOT": str(tmp_path / "gone")})
    assert gone.set["MAXTEXT_ASSETS_ROOT"] == str(ASSETS)
    assert "there is no such folder" in told(gone)


def test_values_that_lost_are_told_with_both_values_and_the_way_to_keep_them() -> None:
    baked = {"GPU_MAX_HW_QUEUES": "8", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}
    text = told(layer(gpu(), {**baked, "HSA_NO_SCRATCH_RECLAIM": "0"}, baked))
    assert "GPU_MAX_HW_QUEUES=8 -> 2, --xla_gpu_autotune_level=0 -> 4" in text
    assert "platform.env.GPU_MAX_HW_QUEUES=8" in text
    assert "HSA_NO_SCRATCH_RECLAIM=0 (preset: 1)" in text


def test_nothing_is_told_where_nobody_disagrees() -> None:
    assert layer(gpu(), {"GPU_MAX_HW_QUEUES": "2", "HOME": "/root"}).notes == ()


def test_variables_that_cannot_change_a_run_are_left_out_of_its_record() -> None:
    environment = layer(gpu(), {"HOME": "/root", "TF_CLI_CONFIG_FILE": "terraform.rc", "OLDPWD": "/"})
    written = [*environment.set, *environment.inherited, *environment.sources, *environment.unset]
    assert [name for name in written if name in ("HOME", "TF_CLI_CONFIG_FILE", "OLDPWD")] == []


def test_secrets_reach_the_child_and_nothing_that_is_written() -> None:
    inherited = {"HF_TOKEN": "hf_SENTINEL", "JAX_SECRET_KEY": "SENTINEL", "M_HF_ACCESS_TOKEN": "SENTINEL"}
    environment = layer(
        gpu(env={"WANDB_API_KEY": "SENTINEL"}), inherited, {"WANDB_API_KEY": "x"}, env=frozenset({"WANDB_API_KEY"})
    )
    child = apply(environment, inherited)
    assert (child["HF_TOKEN"], child["WANDB_API_KEY"]) == ("hf_SENTINEL", "SENTINEL")
    public, secret = split_secrets(environment.set)
    assert secret == {"WANDB_API_KEY": "SENTINEL"}
    written = [public, environment.unset, environment.inherited, environment.sources, told(environment)]
    assert "SENTINEL" not in repr(written)
    assert "M_HF_ACCESS_TOKEN" in environment.unset


def test_every_name_that_cannot_be_set_this_way_is_refused_at_once() -> None:
    platform = gpu(env={"M_STEPS": "7", "XLA_FLAGS": "--xla_a=1", "A B": "1"}, xla_flags={"--xla_a": "1"})
    with pytest.raises(ConfigError) as refusal:
        layer(platform)
    text = str(refusal.value)
    assert len(refusal.value.problems) == 4
    assert "steps=<value>" in text
    assert "platform.xla_flags.<name>=<value>" in text


def test_an_inherited_string_that_xla_would_misread_is_refused() -> None:
    with pytest.raises(ConfigError, match="name of a file"):
        layer(gpu(), {"XLA_FLAGS": "flags.txt"})


def load_preset(name: str) -> PlatformSettings:
    """The shipped preset, composed by Hydra."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        preset = compose(f"platform/{name}").platform
    settings = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(PlatformSettings), preset))
    assert isinstance(settings, PlatformSettings)
    return settings


ALL_CHIPS = {
    "XLA_PYTHON_CLIENT_MEM_FRACTION": ".97",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "1",
    "NVTE_USE_HIPBLASLT": "1",
    "NVTE_FUSED_ATTN": "1",
    "NVTE_FUSED_ATTN_CK": "1",
    "NVTE_FUSED_ATTN_AOTRITON": "0",
    "NVTE_CK_USES_BWD_V3": "1",
    "NVTE_CK_USES_FWD_V3": "1",
    "NVTE_CK_IS_V3_ATOMIC_FP32": "0",
    "NVTE_CK_HOW_V3_BF16_CVT": "2",
    "GPU_MAX_HW_QUEUES": "2",
    "HIP_FORCE_DEV_KERNARG": "1",
    "HSA_FORCE_FINE_GRAIN_PCIE": "1",
}


@pytest.mark.parametrize(
    ("preset", "own"),
    [
        ("mi300x", {"HSA_NO_SCRATCH_RECLAIM": "1"}),
        ("mi325x", {"HSA_NO_SCRATCH_RECLAIM": "1"}),
        ("mi355x", {"RCCL_WARP_SPEED_AUTO": "0"}),
    ],
)
def test_each_chip_gets_the_common_variables_and_its_own(preset: str, own: dict[str, str]) -> None:
    child = layer(load_preset(preset)).set
    assert parse_flags(child.pop("XLA_FLAGS")) == {"xla_gpu_autotune_level": "4", **EIGHT_FLAGS}
    assert child.pop("JAX_PLATFORMS").split(",")[0] == "rocm"
    assert child.pop("MAXTEXT_ASSETS_ROOT") == str(ASSETS)
    assert child == ALL_CHIPS | own


def test_a_preset_is_overridden_by_the_shell_and_that_by_the_command_line() -> None:
    preset = load_preset("mi355x")
    preset.env["GPU_MAX_HW_QUEUES"] = "4"
    shell = {"GPU_MAX_HW_QUEUES": "8", "RCCL_WARP_SPEED_AUTO": "1"}
    child = apply(layer(preset, shell, env=frozenset({"GPU_MAX_HW_QUEUES"})), shell)
    assert (child["GPU_MAX_HW_QUEUES"], child["RCCL_WARP_SPEED_AUTO"]) == ("4", "1")


def test_the_cpu_preset_uses_the_cpu_and_nothing_of_a_gpu() -> None:
    child = layer(load_preset("cpu")).set
    assert (child["JAX_PLATFORMS"], child["XLA_FLAGS"]) == ("cpu", "--xla_force_host_platform_device_count=1")
    assert [name for name in child if name.startswith(("NVTE", "HSA", "HIP", "RCCL"))] == []
