"""Files that must exist, must not exist, or must fit together."""

import importlib.util
from collections.abc import Iterator
from glob import iglob
from pathlib import Path
from typing import Any

from primus_hydra.maxtext.keys import package_dir
from primus_hydra.rules.context import RuleContext
from primus_hydra.rules.paths import expand_user, is_file
from primus_hydra.rules.tokenizers import find_tokenizer, read_vocabulary_size

_LOCAL_BUILDERS = frozenset({"json", "parquet", "text", "csv", "arrow"})
"""`hf_path` values that name a reader of local files instead of a dataset on the Hub."""
_PLAIN_GRAIN_FILES = frozenset({"arrayrecord", "tfrecord", "parquet"})
"""`grain_file_type` values whose patterns are expanded with glob (MaxText grain_data_processing.py)."""


def find_missing_base_config(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A base file that lies neither beside the export nor in MaxText's configs folder."""
    name = context.keys.get("base_config")
    if not isinstance(name, str) or not name:
        return
    configs = package_dir() / "configs"
    if not any(is_file(folder / name) for folder in (context.run_dir, configs)):
        yield {"base_config": name, "configs": configs}


def find_stray_base_config(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A file beside the export that MaxText would read instead of its own base.yml."""
    name = context.keys.get("base_config")
    if isinstance(name, str) and name and not Path(name).is_absolute() and is_file(context.run_dir / name):
        yield {"path": context.run_dir / name}


def find_stray_model_file(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A models/ folder near the export that hides MaxText's own model file."""
    name = context.effective.get("model_name")
    if not isinstance(name, str) or name in ("", "default"):
        return
    for folder in (context.run_dir, context.run_dir.parent):
        path = folder / "models" / f"{name.replace('-Instruct', '')}.yml"
        if is_file(path):
            yield {"path": path}


def find_missing_data_files(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Local data files or patterns that match nothing."""
    for key, pattern in _list_data_patterns(context):
        if not pattern or "://" in pattern:
            continue
        # pathlib cannot expand an absolute pattern
        if next(iglob(str(expand_user(pattern)), recursive=True), None) is None:  # noqa: PTH207
            yield {"key": key, "pattern": pattern, "keys": (key,)}


def _list_data_patterns(context: RuleContext) -> Iterator[tuple[str, str]]:
    effective = context.effective
    kind = effective.get("dataset_type")
    for key in (f"{kind}_train_files", f"{kind}_eval_files"):
        value = effective.get(key)
        patterns = [str(part) for part in (value if isinstance(value, list | tuple) else [value]) if part]
        if kind == "hf":
            local = effective.get("hf_path") in _LOCAL_BUILDERS
            yield from ((key, pattern) for pattern in patterns if local or Path(pattern).is_absolute())
        elif kind == "grain" and effective.get("grain_file_type") in _PLAIN_GRAIN_FILES:
            mixture = [part.split(",")[0].strip() for pattern in patterns for part in pattern.split(";")]
            yield from ((key, pattern) for pattern in mixture)


def find_missing_tensorflow(context: RuleContext) -> Iterator[dict[str, Any]]:
    """TensorFlow is not installed."""
    if importlib.util.find_spec("tensorflow") is None:
        yield {}


def find_missing_tokenizer(context: RuleContext) -> Iterator[dict[str, Any]]:
    """An absolute tokenizer path that does not exist; other names may be on the Hub."""
    path = context.effective.get("tokenizer_path")
    if isinstance(path, str) and Path(path).is_absolute() and find_tokenizer(path, package_dir()) is None:
        shipped = sorted(entry.name for entry in (package_dir() / "assets" / "tokenizers").glob("*"))
        yield {"shipped": ", ".join(shipped)}


def find_tokenizer_that_is_a_file(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A SentencePiece or tiktoken file where the hf pipeline wants a Hugging Face folder."""
    path = context.effective.get("tokenizer_path")
    found = find_tokenizer(path, package_dir()) if isinstance(path, str) else None
    if found is not None and found.is_file():
        yield {"path": found}


def find_oversized_tokenizer(context: RuleContext) -> Iterator[dict[str, Any]]:
    """A tokenizer that makes ids which the embedding table does not have."""
    path, vocabulary = context.effective.get("tokenizer_path"), context.effective.get("vocab_size")
    found = find_tokenizer(path, package_dir()) if isinstance(path, str) else None
    size = read_vocabulary_size(found) if found is not None else None
    if size is not None and isinstance(vocabulary, int) and size > vocabulary:
        yield {"tokenizer": found, "size": size}
