"""`action=explain`: every exported key with its value and where it came from."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from primus_hydra.maxtext.keys import load_keys
from primus_hydra.maxtext.model_files import load_defaults, load_model_keys, model_file
from primus_hydra.redaction import show_value
from primus_hydra.xla_flags import format_flags, parse_flags


def explain_lines(keys: Mapping[str, Any], origins: Mapping[str, str], *, with_defaults: bool) -> Iterator[str]:
    """YAML lines, one key each, with the origin as a comment; the whole is valid YAML.

    Args:
        keys: composed MaxText keys.
        origins: key -> where it was set.
        with_defaults: also list what nobody set: keys of MaxText's own model file, then its defaults.
    """
    yield from _lines({name: (keys[name], origins.get(name, "primus_hydra")) for name in sorted(keys)})
    if not with_defaults:
        yield f"# {len(load_keys()) - len(keys)} more keys have MaxText's own values: explain.defaults=true lists them."
        return
    model_name = str(keys.get("model_name", "default"))
    file = model_file(model_name)
    from_model = {name: value for name, value in load_model_keys(model_name).items() if name not in keys}
    yield from _lines(
        {name: (from_model[name], f"MaxText's {file.name if file else ''}") for name in sorted(from_model)}
    )
    rest = {name: value for name, value in load_defaults().items() if name not in keys and name not in from_model}
    yield from _lines(
        {name: (rest[name], f"MaxText default; {load_keys()[name].description}") for name in sorted(rest)}
    )


def explain_environment(variables: Mapping[str, str], sources: Mapping[str, str]) -> Iterator[str]:
    """YAML comments: the environment that the trainer gets, each variable and XLA flag with the layer that set it."""
    yield "# The trainer's environment:"
    for name, value in sorted(variables.items()):
        if name != "XLA_FLAGS":
            yield f"#   {name}={show_value(name, value)}  ({sources.get(name, 'primus_hydra')})"
    for flag, text in parse_flags(variables.get("XLA_FLAGS", "")).items():
        yield f"#   {format_flags({flag: text})}  ({sources.get(f'XLA_FLAGS:{flag}', 'primus_hydra')})"


def _lines(entries: Mapping[str, tuple[Any, str]]) -> Iterator[str]:
    texts = {name: f"{name}: {format_value(value)}" for name, (value, _) in entries.items()}
    width = min(max((len(text) for text in texts.values()), default=0), 60)
    for name, (_, origin) in entries.items():
        yield f"{texts[name]:<{width}}  # {origin.rstrip('; ')}"


def format_value(value: Any) -> str:
    """One value as YAML on one line, strings quoted only where YAML needs it."""
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True).strip()
    return text.removesuffix("\n...").strip()
