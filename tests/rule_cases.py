"""For every rule one configuration that collides with it and one that nearly does.

Plain names are MaxText keys. Names with an underscore in front set the scene: `_platform`, `_machine` (GPUs found),
`_env`, `_action`, `_trainer`, `_jax`, `_maxtext`, `_nodes`, `_devices`, `_te`, and `_files` (made below the
scene's folder, which is written `{tmp}`; the run folder is `{tmp}/run`).
"""

from typing import Any

Scene = dict[str, Any]

_AMD: Scene = {"_platform": "mi300x", "hardware": "gpu", "attention": "cudnn_flash_te"}
_MI355X: Scene = {**_AMD, "_platform": "mi355x"}
_MOE: Scene = {**_AMD, "model_name": "mixtral-8x7b", "capacity_factor": 1.25}
_TRAIN: Scene = {**_AMD, "_action": "train", "_machine": ("gfx942",) * 8, "_te": True}
TWO_NODES: Scene = {**_TRAIN, "skip_jax_distributed_system": False, "_nodes": 2}
READY = {"JAX_COORDINATOR_IP": "10.0.0.1", "JAX_COORDINATOR_PORT": "12345", "NNODES": "2", "NODE_RANK": "1"}
_HF: Scene = {"dataset_type": "hf", "hf_path": "allenai/c4"}

CASES: dict[str, tuple[Scene, Scene]] = {
    "attention_unknown": ({"attention": "cudnn_flash"}, {"attention": "autoselected"}),
    "attention_flash_on_cpu": ({"attention": "flash"}, {"attention": "dot_product"}),
    "attention_flash_on_amd": (
        {**_AMD, "attention": "autoselected"},
        {**_AMD, "attention": "autoselected", "max_target_length": 64},
    ),
    "attention_cudnn_on_cpu": ({"attention": "cudnn_flash_te"}, _AMD),
    "attention_cudnn_jax_on_amd": ({**_AMD, "attention": "cudnn_flash_jax"}, _AMD),
    "attention_cudnn_jax_packing": (
        {**_HF, "attention": "cudnn_flash_jax"},
        {**_HF, "attention": "cudnn_flash_jax", "packing": False},
    ),
    "attention_paged": ({"attention": "paged"}, {"attention": "dot_product"}),
    "attention_vllm": ({"attention": "vllm_rpa"}, {"attention": "dot_product"}),
    "attention_te_packing": (
        {**_AMD, "hardware": "gpu_multiprocess", "max_segments_per_seq": -1},
        {**_AMD, "hardware": "gpu_multiprocess", "max_segments_per_seq": 32},
    ),
    "attention_sparse_indexer": (
        {**_AMD, "model_name": "deepseek4-tiny"},
        {**_AMD, "model_name": "deepseek4-tiny", "attention": "dot_product"},
    ),
    "attention_te_shardy": ({**_AMD, "shardy": False}, {**_AMD, "shardy": False, "_jax": "0.9.2"}),
    "transformer_engine_missing": ({**_TRAIN, "_te": False}, _TRAIN),
    "attention_dot_product_long": (
        {**_AMD, "attention": "dot_product", "max_target_length": 8192},
        {**_AMD, "max_target_length": 8192},
    ),
    "remat_policy_unknown": ({"remat_policy": "fulll"}, {"remat_policy": "minimal_with_context_and_quantization"}),
    "remat_minimal_flash": ({"remat_policy": "minimal_flash"}, {"remat_policy": "minimal_with_context"}),
    "remat_none_is_full": ({"remat_policy": None}, {"remat_policy": "full"}),
    "remat_knobs_ignored": (
        {"remat_policy": "full", "mlpwi_0": "device"},
        {"remat_policy": "custom", "mlpwi_0": "device"},
    ),
    "remat_custom_empty": ({"remat_policy": "custom"}, {"remat_policy": "custom", "context": "offload"}),
    "fp8_ocp_on_gfx942": ({**_AMD, "quantization": "fp8"}, {**_AMD, "quantization": "nanoo_fp8"}),
    "fp8_fnuz_on_gfx950": ({**_MI355X, "quantization": "nanoo_fp8"}, {**_MI355X, "quantization": "fp8"}),
    "fp8_nanoo_without_qwix": (
        {"quantization": "fp8_nanoo"},
        {"quantization": "fp8_nanoo", "use_qwix_quantization": True},
    ),
    "quantization_needs_qwix": ({"quantization": "int4"}, {"quantization": "int4", "use_qwix_quantization": True}),
    "intmp_needs_a_config": ({"quantization": "intmp"}, {"quantization": "intmp", "quant_cfg_path": "/a.json"}),
    "serve_fp8_weight": ({"quantization": "serve_fp8_weight"}, {"quantization": "int8"}),
    "qwix_ignores_quantization": (
        {"quantization": "nanoo_fp8", "use_qwix_quantization": True},
        {"quantization": "fp8_nanoo", "use_qwix_quantization": True},
    ),
    "qwix_without_quantization": ({"use_qwix_quantization": True}, {"use_qwix_quantization": False}),
    "fp8_gradient_accumulation": (
        {"quantization": "fp8_nanoo", "use_qwix_quantization": True, "gradient_accumulation_steps": 4},
        {"quantization": "int8", "gradient_accumulation_steps": 4},
    ),
    "te_quantization_on_cpu": ({"quantization": "te_mxfp8"}, {**_AMD, "quantization": "te_mxfp8"}),
    "moe_fp8_nnx": (
        {**_MOE, "quantization": "nanoo_fp8", "_maxtext": "0.2.4"},
        {**_MOE, "quantization": "nanoo_fp8", "_maxtext": "0.2.5"},
    ),
    "moe_fp8_not_verified": (
        {**_MOE, "quantization": "nanoo_fp8"},
        {**_MOE, "quantization": "nanoo_fp8", "_maxtext": "0.2.4"},
    ),
    "gemma4_moe_fp8": (
        {**_AMD, "model_name": "gemma4-26b", "quantization": "nanoo_fp8"},
        {**_AMD, "model_name": "gemma4-31b", "quantization": "nanoo_fp8"},
    ),
    "qwen3_30b_fp8_gfx950": (
        {**_MI355X, "model_name": "qwen3-30b-a3b", "quantization": "fp8"},
        {**_MI355X, "model_name": "qwen3-14b", "quantization": "fp8"},
    ),
    "gemma4_31b_nanoo_timeouts": (
        {**_AMD, "model_name": "gemma4-31b", "quantization": "nanoo_fp8"},
        {**_AMD, "model_name": "gemma4-31b"},
    ),
    "hardware_tpu": ({"hardware": "tpu"}, {"hardware": "cpu"}),
    "hardware_gpu_on_cpu": ({"hardware": "gpu"}, _AMD),
    "hardware_cpu_on_gpu": ({**_AMD, "hardware": "cpu"}, _AMD),
    "hardware_cpu_without_skip": (
        {"skip_jax_distributed_system": False},
        {"skip_jax_distributed_system": False, "_env": {"JOB_INDEX": "0"}},
    ),
    "multi_node_without_coordinator": (TWO_NODES, {**TWO_NODES, "_env": READY}),
    "no_gpu": ({**_TRAIN, "_machine": ()}, {**_TRAIN, "_machine": (), "_action": "export"}),
    "wrong_chip": ({**_TRAIN, "_machine": ("gfx950",) * 8}, _TRAIN),
    "too_few_gpus": ({**_TRAIN, "_machine": ("gfx942",) * 4}, {**_TRAIN, "_machine": ("gfx942",) * 4, "_devices": 4}),
    "does_not_fit": (
        {"_action": "train", "model_name": "llama3-8b"},
        {"_action": "train", "model_name": "llama3-8b", "base_num_decoder_layers": 2, "base_emb_dim": 64},
    ),
    "does_not_fit_elsewhere": (
        {**_AMD, "model_name": "llama3.1-405b", "_action": "export"},
        {**_AMD, "model_name": "llama3-70b", "_action": "export", "ici_fsdp_parallelism": 8},
    ),
    "mesh_ici": ({**_AMD, "_devices": 4, "ici_fsdp_parallelism": 8}, {**_AMD, "ici_fsdp_parallelism": 8}),
    "mesh_dcn": (
        {**_AMD, "dcn_fsdp_parallelism": 2, "dcn_data_parallelism": 1},
        {**_AMD, "dcn_fsdp_parallelism": 2, "dcn_data_parallelism": 1, "_nodes": 2},
    ),
    "mesh_axis_ignored": ({"ici_sequence_parallelism": 8}, {"ici_sequence_parallelism": 1}),
    "global_batch_empty": (
        {"per_device_batch_size": 0.5},
        {**_AMD, "per_device_batch_size": 0.125},
    ),
    "grouped_query_heads": (
        {"base_num_query_heads": 3, "base_num_kv_heads": 2},
        {"base_num_query_heads": 4, "base_num_kv_heads": 2},
    ),
    "vocabulary_tiling": (
        {"per_device_batch_size": 1.0, "max_target_length": 100, "num_vocab_tiling": 8},
        {"per_device_batch_size": 1.0, "max_target_length": 128, "num_vocab_tiling": 8},
    ),
    "scan_layers_illegal": (
        {**_AMD, "model_name": "qwen3-vl-30b-a3b", "scan_layers": True},
        {**_AMD, "model_name": "qwen3-vl-30b-a3b", "scan_layers": False},
    ),
    "moe_megablox_on_amd": (_MOE, {**_MOE, "sparse_matmul": False}),
    "moe_dense_without_capacity": (
        {**_MOE, "sparse_matmul": False, "capacity_factor": -1.0},
        {**_MOE, "sparse_matmul": False},
    ),
    "moe_sparse_matmul_on_amd": ({**_MOE, "megablox": False}, {**_MOE, "megablox": False, "sparse_matmul": False}),
    "data_files_missing": (
        {"dataset_type": "hf", "hf_path": "json", "hf_train_files": "{tmp}/*.jsonl"},
        {"dataset_type": "hf", "hf_path": "json", "hf_train_files": "{tmp}/*.jsonl", "_files": ["a.jsonl"]},
    ),
    "hf_path_missing": ({"dataset_type": "hf"}, _HF),
    "grain_source_missing": (
        {"dataset_type": "grain"},
        {"dataset_type": "grain", "grain_file_type": "parquet", "hf_path": "allenai/c4"},
    ),
    "hf_evaluation_data_missing": (
        {**_HF, "eval_interval": 10},
        {**_HF, "eval_interval": 10, "hf_eval_split": "validation"},
    ),
    "tensorflow_missing": ({"dataset_type": "tfds"}, {"dataset_type": "tfds", "_trainer": True}),
    "tokenizer_missing": (
        {**_HF, "tokenizer_path": "/nowhere/tokenizer"},
        {**_HF, "tokenizer_path": "meta-llama/Llama-3.1-8B"},
    ),
    "tokenizer_not_hugging_face": (
        {**_HF, "tokenizer_path": "tokenizer.llama2"},
        {**_HF, "tokenizer_path": "qwen3-tokenizer"},
    ),
    "tokenizer_larger_than_vocabulary": (
        {**_HF, "tokenizer_path": "qwen3-tokenizer", "vocab_size": 32000},
        {**_HF, "tokenizer_path": "qwen3-tokenizer", "vocab_size": 151936},
    ),
    "steps_not_positive": ({"steps": 0}, {"steps": -1, "learning_rate_schedule_steps": 5}),
    "steps_from_empty_schedule": (
        {"steps": -1, "learning_rate_schedule_steps": 0},
        {"steps": -1, "learning_rate_schedule_steps": 5},
    ),
    "profiler_window_too_late": (
        {"profiler": "xplane", "skip_first_n_steps_for_profiler": 3, "steps": 3},
        {"profiler": "xplane", "skip_first_n_steps_for_profiler": 3, "steps": 8},
    ),
    "profiler_window_cut": (
        {"profiler": "xplane", "skip_first_n_steps_for_profiler": 3, "steps": 5, "profiler_steps": 5},
        {"profiler": "xplane", "skip_first_n_steps_for_profiler": 3, "steps": 8, "profiler_steps": 5},
    ),
    "base_config_missing": ({"base_config": "bse.yml"}, {"base_config": "base.yml"}),
    "stray_base_config": ({"base_config": "base.yml", "_files": ["run/base.yml"]}, {"base_config": "base.yml"}),
    "stray_model_file": (
        {"model_name": "llama3-8b", "_files": ["models/llama3-8b.yml"]},
        {"model_name": "llama3-8b", "_files": ["models/llama3-70b.yml"]},
    ),
    "model_without_file": (
        {"model_name": "deepseek3-671b-lineage"},
        {"model_name": "llama3.1-8b-Instruct"},
    ),
    "environment_overrides": ({"_env": {"M_STEPS": "7"}}, {"_env": {"M_STEPZ": "7"}}),
    "environment_override_misspelt": ({"_env": {"M_STEPZ": "7"}}, {"_env": {"M_ARENA_MAX": "7"}}),
    "value_not_filled_in": ({"base_output_directory": "<changeme>"}, {"image_placeholder": "<|image|>"}),
}
