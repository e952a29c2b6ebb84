"""Names and values that MaxText would read in another way than meant, or not at all."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from primus_hydra.maxtext.keys import package_dir
from primus_hydra.rules.context import RuleContext
from primus_hydra.rules.paths import is_file

_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")
"""Variables whose value is never shown; a name too many is hidden rather than one too few."""
_PLACEHOLDER = re.compile(r"\?\?\?|<[A-Za-z][A-Za-z0-9 _.-]*>")
_SIZES = ("base_emb_dim", "base_mlp_dim", "base_num_decoder_layers", "base_num_query_heads", "vocab_size")
"""Keys that together make a model of its own, so that no model file is needed."""
_REMAT_KNOBS = (
    *("decoder_layer_input", "indexer_cutoff_threshold", "context"),
    *("mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo"),
    *("moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo", "moe_x_sorted", "moe_routing_maps"),
    *("query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "query_wa_proj", "kv_wa_proj"),
    *("mla_q", "mla_kv", "attention_out", "out_proj"),
)
"""Tensors that remat_policy=custom places one by one (MaxText types.py, `tensors_on_device`)."""


def find_environment_overrides(context: RuleContext) -> Iterator[dict[str, Any]]:
    """M_<KEY> variables that MaxText would take for values of its keys."""
    candidates = [variable for variable in context.env if variable.startswith("M_")]
    keys = {f"M_{key.upper()}": key for key in context.effective} if candidates else {}
    for variable in sorted(candidates):
        if variable in keys:
            key = keys[variable]
            secret = _SECRET.search(variable) is not None
            value = "(hidden)" if secret else context.env[variable]
            typed = "<value>" if secret else value
            advice = "Set HF_TOKEN" if key == "hf_access_token" else f"Write {key}={typed} on the command line"
            yield {"variable": variable, "value": value, "key": key, "advice": advice, "keys": (key,)}


def find_misspelt_environment_overrides(context: RuleContext) -> Iterator[dict[str, Any]]:
    """M_* variables that are nearly a key: MaxText ignores them."""
    candidates = {variable for variable in context.env if variable.startswith("M_")}
    keys = [f"M_{key.upper()}" for key in context.effective] if candidates else []
    for variable in sorted(candidates - set(keys)):
        if close := get_close_matches(variable, keys, n=1, cutoff=0.85):
            yield {"variable": variable, "meant": close[0].removeprefix("M_").lower()}


def find_idle_remat_knobs(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Per-tensor remat settings that were composed, and that the policy ignores."""
    for knob in _REMAT_KNOBS:
        neutral = "device" if knob == "decoder_layer_input" else "remat"
        if knob in context.keys and context.keys[knob] != neutral:
            yield {"knob": knob, "place": context.keys[knob], "keys": (knob, "remat_policy")}


def find_empty_custom_remat(context: RuleContext) -> Iterator[dict[str, Any]]:
    """remat_policy=custom with no tensor placed."""
    places = {context.effective.get(knob) for knob in _REMAT_KNOBS if knob != "decoder_layer_input"}
    if not places & {"device", "offload"}:
        yield {}


def find_model_without_file(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A model name for which MaxText has no sizes, and none were composed."""
    name = context.effective.get("model_name")
    if not isinstance(name, str) or name in ("", "default") or all(key in context.keys for key in _SIZES):
        return
    folder = package_dir() / "configs" / "models"
    if not is_file(folder / f"{name.replace('-Instruct', '')}.yml"):
        close = get_close_matches(name, [file.stem for file in folder.glob("*.yml")], n=3)
        yield {"sizes": ", ".join(_SIZES), "close": f"Close to it: {', '.join(close)}." if close else ""}


def find_placeholders(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Values that a preset left for the user to fill in."""
    for key, value in context.keys.items():
        parts = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(part, str) and _PLACEHOLDER.fullmatch(part.strip()) for part in parts):
            yield {"key": key, "value": value, "keys": (key,)}
