"""The shipped presets: names, values, environment tables, the text sample."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose
from omegaconf import DictConfig, OmegaConf

from primus_hydra.maxtext.keys import load_keys, package_dir
from primus_hydra.paths import conf_dir, list_choices, list_groups
from primus_hydra.schema import PRIVATE_KEYS, Settings

pytestmark = pytest.mark.usefixtures("hydra_app")

NAMESPACES = set(Settings.__dataclass_fields__)
MODELS = {
    "deepseek_v2_16B": ("deepseek2-16b", "deepseek-ai/DeepSeek-V2-Lite"),
    "grok1": ("default", "mistralai/Mixtral-8x22B-v0.1"),
    "llama2_7B": ("llama2-7b", "meta-llama/Llama-2-7b"),
    "llama2_70B": ("llama2-70b", "meta-llama/Llama-2-70b"),
    "llama3_8B": ("llama3-8b", "meta-llama/Meta-Llama-3-8B"),
    "llama3_70B": ("llama3-70b", "meta-llama/Meta-Llama-3-70B"),
    "llama3.1_405B": ("llama3.1-405b", "meta-llama/Llama-3.3-70B-Instruct"),
    "llama3.3_70B": ("llama3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
    "mixtral_8x7B": ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
    "mixtral_8x22B": ("mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1"),
    "qwen3_14B": ("qwen3-14b", "Qwen/Qwen3-14B"),
    "qwen3_30B_A3B": ("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B"),
}
GEMMA = {"gemma4_26B": "gemma4-26b", "gemma4_31B": "gemma4-31b"}
MOE = {"deepseek_v2_16B": 1.25, "gemma4_26B": 1, "grok1": 1, "mixtral_8x7B": 1, "mixtral_8x22B": 1, "qwen3_30B_A3B": 1}
PRE_TRAINER = {
    "trainable": True,
    "sink_level": None,
    "file_sink_level": "DEBUG",
    "stderr_sink_level": "INFO",
    "base_config": "base.yml",
    "hardware": "gpu",
    "steps": 1000,
    "log_period": 100,
    "dataset_type": "hf",
    "hf_path": "allenai/c4",
    "hf_data_dir": "en",
    "hf_train_files": "",
    "packing": True,
    "max_segments_per_seq": 32,
    "enable_checkpointing": False,
    "async_checkpointing": False,
    "profiler": "xplane",
    "skip_first_n_steps_for_profiler": 3,
    "profiler_steps": 1,
    "remat_policy": "full",
    "optimizer_memory_host_offload": False,
    "scan_layers": True,
    "param_scan_axis": 1,
    "dtype": "bfloat16",
    "weight_dtype": "bfloat16",
    "quantization": "",
    "quantize_kvcache": False,
    "kv_quant_axis": "heads_and_dkv",
    "kv_quant_dtype": "int8",
    "checkpoint_is_quantized": False,
    "logits_dot_in_fp32": False,
    "shardy": True,
}
AMD_ENV = {
    "JAX_PLATFORMS": "rocm,cpu",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": ".97",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "1",
    "NVTE_USE_HIPBLASLT": "1",
    "NVTE_FUSED_ATTN": "1",
    "NVTE_FUSED_ATTN_CK": "1",
    "NVTE_FUSED_ATTN_AOTRITON": "0",
    "NVTE_CK_USES_FWD_V3": "1",
    "NVTE_CK_USES_BWD_V3": "1",
    "NVTE_CK_IS_V3_ATOMIC_FP32": "0",
    "NVTE_CK_HOW_V3_BF16_CVT": "2",
    "GPU_MAX_HW_QUEUES": "2",
    "HIP_FORCE_DEV_KERNARG": "1",
    "HSA_FORCE_FINE_GRAIN_PCIE": "1",
}
CHIP_ENV = {
    "mi300x": {"HSA_NO_SCRATCH_RECLAIM": "1"},
    "mi325x": {"HSA_NO_SCRATCH_RECLAIM": "1"},
    "mi355x": {"RCCL_WARP_SPEED_AUTO": "0"},
}
XLA_FLAGS = {
    "xla_gpu_memory_limit_slop_factor": "95",
    "xla_gpu_reduce_scatter_combine_threshold_bytes": "8589934592",
    "xla_gpu_all_gather_combine_threshold_bytes": "8589934592",
    "xla_gpu_enable_command_buffer": "''",
    "xla_gpu_enable_latency_hiding_scheduler": "true",
    "xla_gpu_enable_triton_gemm": "false",
    "xla_gpu_enable_cublaslt": "true",
    "xla_gpu_autotune_level": "4",
    "xla_gpu_enable_all_gather_combine_by_dim": "false",
}
CHIPS = {
    "mi300x": ("gfx942", 192, 1307, 2614, "nanoo_fp8"),
    "mi325x": ("gfx942", 256, 1307, 2614, "nanoo_fp8"),
    "mi355x": ("gfx950", 288, 2500, 5000, "fp8"),
}
PRESETS = sorted(path.relative_to(conf_dir()) for path in conf_dir().glob("*/*.yaml"))


def compose_on(platform: str, *overrides: str) -> DictConfig:
    return compose("config", overrides=[*overrides, f"platform={platform}"])


def read_preset(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((conf_dir() / path).read_text()) or {}
    return content


def test_no_group_is_named_like_a_key_of_maxtext() -> None:
    groups = list_groups([conf_dir()])
    assert groups == {"module", "model", "data", "platform", "precision", "experiment", "sweep"}
    assert groups.isdisjoint(load_keys())


@pytest.mark.parametrize("path", PRESETS, ids=str)
def test_every_key_of_a_preset_is_a_key_of_maxtext_or_ours(path: Path) -> None:
    assert (conf_dir() / path).read_text().startswith("# @package _global_\n")
    assert set(read_preset(path)) <= {"defaults"} | NAMESPACES | PRIVATE_KEYS | set(load_keys())


@pytest.mark.parametrize("path", PRESETS, ids=str)
def test_a_preset_never_sets_what_the_run_folder_decides(path: Path) -> None:
    assert set(read_preset(path)).isdisjoint({"run_name", "base_output_directory", "metrics_file", "hf_access_token"})


def test_pre_trainer_has_the_documented_values() -> None:
    config = compose_on("mi300x", "model=model_base")
    assert {key: config[key] for key in PRE_TRAINER} == PRE_TRAINER
    assert set(read_preset(Path("module/pre_trainer.yaml"))) - {"defaults"} <= set(PRE_TRAINER)


def test_model_base_works_with_any_name_that_maxtext_has() -> None:
    config = compose_on("mi300x", "model=model_base", "model_name=qwen3-32b")
    assert (config.model_name, config.override_model_config, config.attention) == ("qwen3-32b", True, "cudnn_flash_te")
    assert config.use_iota_embed is True


def test_every_model_preset_is_accounted_for() -> None:
    assert set(list_choices([conf_dir()], "model")) == {*MODELS, *GEMMA, "model_base", "tiny"}


@pytest.mark.parametrize("preset", MODELS)
def test_a_model_preset_names_maxtexts_model_and_its_tokenizer(preset: str) -> None:
    config = compose_on("mi300x", f"model={preset}")
    assert (config.model_name, config.tokenizer_path) == MODELS[preset]
    assert config.model_name in load_keys()["model_name"].choices
    assert preset == "grok1" or (package_dir() / "configs" / "models" / f"{config.model_name}.yml").is_file()


@pytest.mark.parametrize("preset", GEMMA)
def test_gemma4_uses_the_tokenizer_that_maxtext_ships(preset: str) -> None:
    config = compose_on("mi300x", f"model={preset}")
    assert (config.model_name, config.tokenizer_type) == (GEMMA[preset], "sentencepiece")
    assert Path(config.tokenizer_path).is_file()


@pytest.mark.parametrize("preset", MOE)
def test_a_moe_preset_takes_the_path_without_sparse_kernels(preset: str) -> None:
    config = compose_on("mi355x", f"model={preset}")
    assert (config.megablox, config.sparse_matmul, config.capacity_factor) == (False, False, MOE[preset])


@pytest.mark.parametrize("platform", CHIPS)
def test_any_model_avoids_sparse_kernels_on_amd_unless_told_otherwise(platform: str) -> None:
    config = compose_on(platform, "model=model_base", "++model_name=gpt-oss-20b")
    assert (config.megablox, config.sparse_matmul) == (False, False)
    config = compose_on(platform, "model=mixtral_8x7B", "++megablox=true", "++sparse_matmul=true")
    assert (config.megablox, config.sparse_matmul) == (True, True)


def test_grok1_keeps_its_whole_architecture() -> None:
    config = compose_on("mi300x", "model=grok1")
    expected = {
        "base_emb_dim": 6144,
        "base_num_query_heads": 48,
        "base_num_kv_heads": 8,
        "base_mlp_dim": 32768,
        "base_moe_mlp_dim": 32768,
        "base_num_decoder_layers": 64,
        "head_dim": 128,
        "vocab_size": 131072,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "decoder_block": "mixtral",
        "mlp_activations": ["silu", "linear"],
        "rope_max_timescale": 1000000,
        "normalization_layer_epsilon": 1e-5,
        "enable_dropout": False,
        "logits_via_embedding": False,
    }
    assert {key: config[key] for key in expected} == expected


@pytest.mark.parametrize("platform", CHIPS)
def test_the_environment_of_a_chip_is_the_published_one(platform: str) -> None:
    config = compose_on(platform)
    assert OmegaConf.to_container(config.platform.env) == AMD_ENV | CHIP_ENV[platform]
    assert OmegaConf.to_container(config.platform.xla_flags) == XLA_FLAGS


@pytest.mark.parametrize("platform", CHIPS)
def test_the_figures_of_a_chip(platform: str) -> None:
    settings = compose_on(platform).platform
    chip, memory_gib, bf16, fp8, spelling = CHIPS[platform]
    assert (settings.name, settings.chip, settings.jax_platform) == (platform, chip, "rocm")
    assert (settings.memory_per_device_bytes, settings.devices_per_node) == (memory_gib * 2**30, 8)
    assert (settings.peak_bf16_tflops, settings.peak_fp8_tflops, settings.fp8) == (bf16, fp8, spelling)


@pytest.mark.parametrize("path", [path for path in PRESETS if path.parts[0] == "platform"], ids=str)
def test_every_environment_entry_has_a_reason(path: Path) -> None:
    """A comment stands directly above each entry, or above the entry before it for a pair."""
    lines = (conf_dir() / path).read_text().splitlines()
    settings = read_preset(path).get("platform", {})
    for name in [*settings.get("env", {}), *settings.get("xla_flags", {})]:
        index = next(number for number, line in enumerate(lines) if line.strip().startswith(f"{name}:"))
        assert "#" in "".join(lines[index - 2 : index]), name


def test_amd_platforms_keep_the_hardware_of_the_module() -> None:
    assert compose_on("mi355x").hardware == "gpu"


def test_the_cpu_platform_needs_no_accelerator() -> None:
    config = compose_on("cpu", "model=llama3_8B")
    assert (config.hardware, config.skip_jax_distributed_system, config.attention) == ("cpu", True, "dot_product")
    assert (config.platform.jax_platform, config.platform.env.JAX_PLATFORMS, config.platform.devices_per_node) == (
        "cpu",
        "cpu",
        1,
    )


def test_auto_composes_by_itself_into_the_cpu() -> None:
    assert compose_on("auto") == compose_on("cpu")


def test_local_text_takes_the_users_files_and_the_models_tokenizer() -> None:
    config = compose_on("mi300x", "model=qwen3_14B", "data=local_text", "hf_train_files=corpus/*.jsonl")
    assert (config.dataset_type, config.hf_path, config.hf_train_files) == ("hf", "json", "corpus/*.jsonl")
    assert (config.hf_data_dir, config.packing, config.tokenizer_path) == ("", True, "Qwen/Qwen3-14B")


def test_the_order_of_the_layers_is_module_model_data_platform_experiment() -> None:
    config = compose_on("cpu", "experiment=demo")
    assert (config.attention, config.steps, config.hf_path) == ("dot_product", 50, "text")


def test_the_tokenizer_of_the_sample_fits_the_vocabulary_of_tiny() -> None:
    config = compose_on("cpu")
    vocabulary = json.loads(Path(config.tokenizer_path, "tokenizer.json").read_text())["model"]["vocab"]
    assert max(vocabulary.values()) < config.vocab_size
    assert len({byte for byte in vocabulary if len(byte) == 1}) == 256


def test_the_text_sample_is_what_its_script_writes(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "scripts" / "make_sample.py"
    spec = importlib.util.spec_from_file_location("make_sample", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.write_text(tmp_path).read_text() == (conf_dir() / "data" / "sample" / "text.txt").read_text()
