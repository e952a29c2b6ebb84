"""How many parameters a model has, from its MaxText keys alone.

The formulas follow MaxText's layers (`layers/attentions.py`, `attention_mla.py`, `linears.py`, `moe.py`). They are
exact up to norms and biases for plain decoders; a decoder with parts of its own (a vision tower, gated delta nets)
is counted without them and marked as a lower bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DENSE_DECODERS = frozenset({"llama2", "mistral", "gemma", "gemma2", "gemma3", "qwen2", "qwen3", "gpt3", "olmo3"})
_MOE_DECODERS = frozenset({"mixtral", "qwen3_moe", "gpt_oss", "deepseek", "llama4", "gemma4"})
_PLAIN_DECODERS = _DENSE_DECODERS | _MOE_DECODERS
"""Decoders whose every large matrix is counted here."""
_LAYERS_PER_BLOCK = {"gemma2": 2}
"""gemma2 counts a local and a global layer as one (MaxText models/gemma2.py)."""
_GEMMA4_PATTERN = 6
"""gemma4: every sixth layer attends globally, with head sizes of its own (MaxText models/gemma4.py)."""
_NEEDED = ("base_emb_dim", "base_mlp_dim", "base_num_decoder_layers", "base_num_query_heads", "vocab_size")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSize:
    """Parameters of a model."""

    parameters: int
    is_lower_bound: bool
    """True where the decoder has parts that are not counted."""


def count_parameters(effective: Mapping[str, Any]) -> ModelSize | None:
    """Parameters of the model that these keys describe; None where a size is missing.

    Args:
        effective: every MaxText key with the value that MaxText will see.
    """
    if any(_integer(effective, key) <= 0 for key in _NEEDED):
        return None
    decoder = str(effective.get("decoder_block"))
    plain = decoder in _PLAIN_DECODERS
    layers = _integer(effective, "base_num_decoder_layers") * _LAYERS_PER_BLOCK.get(decoder, 1)
    moe_layers = _count_moe_layers(effective, layers)
    total = _count_embeddings(effective)
    emb = _integer(effective, "base_emb_dim")
    total += (layers - moe_layers) * _count_mlp(effective, emb, _integer(effective, "base_mlp_dim"))
    total += moe_layers * _count_moe(effective, decoder)
    if plain:
        total += _count_attention(effective, decoder, layers)
    scaled = effective.get("global_parameter_scale", 1) not in (1, None)
    return ModelSize(parameters=total, is_lower_bound=not plain or scaled or bool(effective.get("use_multimodal")))


def _count_embeddings(effective: Mapping[str, Any]) -> int:
    tables = 1 if effective.get("logits_via_embedding") else 2
    positions = max(0, _integer(effective, "trainable_position_size"))
    return _integer(effective, "base_emb_dim") * (tables * _integer(effective, "vocab_size") + positions)


def _count_moe_layers(effective: Mapping[str, Any], layers: int) -> int:
    if _integer(effective, "num_experts") <= 1:
        return 0
    routed = layers - _integer(effective, "first_num_dense_layers")
    return max(0, routed // max(1, _integer(effective, "interleave_moe_layer_step")))


def _count_mlp(effective: Mapping[str, Any], emb: int, hidden: int) -> int:
    """One matrix in per activation (two for a gated MLP) and one out."""
    activations = effective.get("mlp_activations")
    num_inputs = len(activations) if isinstance(activations, list | tuple) and activations else 1
    return (num_inputs + 1) * emb * max(0, hidden)


def _count_moe(effective: Mapping[str, Any], decoder: str) -> int:
    experts, hidden = _integer(effective, "num_experts"), _integer(effective, "base_moe_mlp_dim")
    hidden = hidden if hidden > 0 else _integer(effective, "base_mlp_dim")
    shared_hidden = _integer(effective, "base_mlp_dim") if decoder == "gemma4" else hidden
    emb, expert_emb = _integer(effective, "base_emb_dim"), _integer(effective, "moe_expert_input_dim")
    expert_emb = expert_emb if expert_emb > 0 else emb
    shared = _count_mlp(effective, emb, max(0, _integer(effective, "shared_experts")) * shared_hidden)
    return experts * expert_emb + experts * _count_mlp(effective, expert_emb, hidden) + shared


def _count_attention(effective: Mapping[str, Any], decoder: str, layers: int) -> int:
    if effective.get("attention_type") == "mla":
        return layers * _count_mla(effective)
    kv_heads, head_dim = _integer(effective, "base_num_kv_heads"), _integer(effective, "head_dim")
    local = _count_gqa(effective, kv_heads, head_dim, kv_tables=2)
    if decoder != "gemma4":
        return layers * local
    wide = _count_gqa(
        effective,
        _integer(effective, "global_num_kv_heads") or kv_heads,
        _integer(effective, "global_head_dim") or head_dim,
        kv_tables=1 if effective.get("share_kv_projections") else 2,
    )
    num_wide = layers // _GEMMA4_PATTERN
    return (layers - num_wide) * local + num_wide * wide


def _count_gqa(effective: Mapping[str, Any], kv_heads: int, head_dim: int, *, kv_tables: int) -> int:
    """Query and output projections, and key and value projections (one table where they are shared)."""
    heads = 2 * _integer(effective, "base_num_query_heads") + kv_tables * max(0, kv_heads)
    return _integer(effective, "base_emb_dim") * head_dim * heads


def _count_mla(effective: Mapping[str, Any]) -> int:
    """Multi-head latent attention: low-rank query (if q_lora_rank > 0) and low-rank key/value projections."""
    emb, heads = _integer(effective, "base_emb_dim"), _integer(effective, "base_num_query_heads")
    nope, rope = _integer(effective, "qk_nope_head_dim"), _integer(effective, "qk_rope_head_dim")
    value_dim, q_rank = _integer(effective, "v_head_dim"), _integer(effective, "q_lora_rank")
    kv_rank = _integer(effective, "kv_lora_rank")
    query = emb * q_rank + q_rank * heads * (nope + rope) if q_rank > 0 else emb * heads * (nope + rope)
    key_value = emb * (kv_rank + rope) + kv_rank * heads * (nope + value_dim)
    return query + key_value + heads * value_dim * emb


def _integer(effective: Mapping[str, Any], key: str) -> int:
    value = effective.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
