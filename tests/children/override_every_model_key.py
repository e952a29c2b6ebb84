"""Child of test_truth: override every key of base.yml and of every MaxText model file; report what MaxText resolves.

Prints one JSON object: model name (`default` for base.yml) -> list of differences. Only pydantic's validators are left
out (they judge combinations, and all keys are changed at once); reading, merging and converting are MaxText's own.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

from maxtext.configs import pyconfig, types

from primus_hydra.export import maxtext_arguments
from primus_hydra.maxtext.keys import Key, load_keys
from primus_hydra.maxtext.model_files import configs_dir, load_model_keys, load_yaml
from primus_hydra.maxtext.truth import as_records, compare, plain
from primus_hydra.runs import RunFolder

_FIXED: dict[str, Any] = {
    "base_config": "base.yml",
    "override_model_config": True,
    "log_config": False,
    "skip_jax_distributed_system": True,
    "hardware": "cpu",
    "jax_cache_dir": None,
    # MaxText forces tokenizer_type=huggingface where no tokenizer is named.
    "tokenizer_path": "assets/tokenizers/tokenizer.llama2",
}
_NOT_CHANGED = frozenset(
    # Two keys that exclude each other, one that must be a dtype, and one that switches the compile cache.
    {*_FIXED, "model_name", "use_jax_splash", "use_tokamax_splash", "mu_dtype", "dump_hlo"}
)


class Unvalidated:
    """Takes the place of MaxTextConfig: the same fields, no validators."""

    model_fields = types.MaxTextConfig.model_fields

    def __new__(cls, **values: Any) -> Any:
        return types.MaxTextConfig.model_construct(**values)


def another_value(value: Any, key: Key) -> Any:
    """A value of the key's type that differs from the one given."""
    others = [choice for choice in key.choices if choice not in (value, "", "none")]
    if others:
        return others[0]
    if key.name == "logical_axis_rules":
        return [["mlp", ["fsdp"]]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, *value[:1]] or ["fsdp"]
    if isinstance(value, dict):
        return {**value, "extra": 1}
    return {"list": [1], "float": 0.5, "int": 7, "bool": True}.get(min(key.kinds, default=""), f"{value}-changed")


def differences(model_name: str, file: Path, folder: RunFolder) -> list[dict[str, Any]]:
    """Load one model with every key of a file changed, exactly as the tool would, and compare."""
    keys, base = load_keys(), load_yaml(configs_dir() / "base.yml")
    changed = {
        name: another_value(value, keys[name])
        for name, value in load_yaml(file).items()
        if name in keys and name not in _NOT_CHANGED
    }
    composed = {**changed, **_FIXED, "model_name": model_name}
    folder.path.mkdir()
    in_file = {name: value for name, value in composed.items() if name != "logical_axis_rules"}
    folder.maxtext_yml.write_text(json.dumps(in_file), encoding="utf-8")
    arguments = ["", *maxtext_arguments(composed, folder)]
    config = pyconfig.HyperParameters(pyconfig._initialize_pydantic(arguments, config_class=Unvalidated))
    resolved = {name: plain(value) for name, value in config.get_keys().items()}
    with_origins = {name: (value, "test") for name, value in composed.items()}
    return as_records(compare(with_origins, resolved, load_model_keys(model_name), base))


def main() -> None:
    """Check base.yml and every model file; the scratch folder is the first argument."""
    logging.disable(logging.WARNING)
    files = {"default": configs_dir() / "base.yml"}
    files |= {file.stem: file for file in sorted((configs_dir() / "models").glob("*.yml"))}
    found = {name: differences(name, file, RunFolder(Path(sys.argv[1]) / name)) for name, file in files.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
