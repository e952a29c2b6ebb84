"""Names that people write for MaxText's keys: removed ones, habits from other trainers, misspellings."""

import difflib
from collections.abc import Iterable

from primus_hydra.errors import Problem
from primus_hydra.maxtext.keys import installed_version, load_keys

REPLACED = {
    "enable_profiler": "Use profiler=xplane (or profiler='' for none).",
    "ici_tensor_transpose_parallelism": "Use ici_tensor_parallelism.",
    "dcn_tensor_transpose_parallelism": "Use dcn_tensor_parallelism.",
    "pure_nnx_decoder": "The NNX decoder is the only one in MaxText 0.2.5: remove the key.",
    "pure_nnx": "The NNX decoder is the only one in MaxText 0.2.5: remove the key.",
    "enable_nnx": "The NNX decoder is the only one in MaxText 0.2.5: remove the key.",
    "max_to_keep": "Use max_num_checkpoints_to_keep.",
}
"""Keys that earlier MaxText versions (or AMD's fork) had -> what to do today, where the installed one lacks them."""

HABITS = {
    "lr": "learning_rate",
    "max_lr": "learning_rate",
    "warmup_ratio": "warmup_steps_fraction",
    "seq_len": "max_target_length",
    "seq_length": "max_target_length",
    "sequence_length": "max_target_length",
    "context_length": "max_target_length",
    "max_seq_len": "max_target_length",
    "batch_size": "per_device_batch_size",
    "micro_batch_size": "per_device_batch_size",
    "train_steps": "steps",
    "max_steps": "steps",
    "num_steps": "steps",
    "train_iters": "steps",
    "num_layers": "base_num_decoder_layers",
    "n_layers": "base_num_decoder_layers",
    "hidden_size": "base_emb_dim",
    "d_model": "base_emb_dim",
    "ffn_hidden_size": "base_mlp_dim",
    "num_heads": "base_num_query_heads",
    "num_attention_heads": "base_num_query_heads",
    "output_dir": "base_output_directory",
    "grad_accum": "gradient_accumulation_steps",
    "gradient_accumulation": "gradient_accumulation_steps",
    "remat": "remat_policy",
    "quant": "quantization",
    "optimizer": "opt_type",
    "optim": "opt_type",
    "bf16": "dtype",
    "fp16": "dtype",
    "fp8": "quantization",
    "precision_dtype": "dtype",
    "seed": "init_weights_seed",
    "fsdp": "ici_fsdp_parallelism",
    "tp": "ici_tensor_parallelism",
    "ep": "ici_expert_parallelism",
    "clip_grad": "gradient_clipping_threshold",
}
"""Names from other trainers -> MaxText's name for the same thing."""


def unknown_key(name: str, origin: str, ours: Iterable[str]) -> Problem:
    """The refusal of a key that is neither MaxText's nor ours.

    Args:
        name: the key as written.
        origin: where it was written.
        ours: names of our own top-level keys and config groups, offered as suggestions too.
    """
    keys = load_keys()
    version = installed_version()
    if name in REPLACED:
        return Problem(
            what=f"{name} is not a key of MaxText {version}: it was removed or belongs to another build.",
            fix=REPLACED[name],
            origin=origin,
        )
    known = [*keys, *ours]
    lower = name.lower()
    meant = HABITS.get(lower, lower)
    parts = [key for key in known if lower in key.split("_")][:3]
    suggestions = [meant] if meant in keys else difflib.get_close_matches(lower, known, n=3, cutoff=0.6) or parts
    fix = (
        f"Did you mean {' or '.join(suggestions)}?"
        if suggestions
        else "Run with action=explain explain.defaults=true to list every key."
    )
    return Problem(what=f"{name} is not a key of MaxText {version} and not one of ours.", fix=fix, origin=origin)
