"""Vocabulary sizes read from the files that MaxText ships."""

import json
from pathlib import Path

import pytest

from primus_hydra.maxtext.keys import package_dir
from primus_hydra.rules.tokenizers import find_tokenizer, read_vocabulary_size


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("tokenizer.default", 32768),
        ("tokenizer.gemma3", 262144),
        ("tokenizer.llama2", 32000),
        ("tokenizer.mistral-v1", 32000),
        ("tokenizer_llama3.tiktoken", 128256),
        ("qwen3-tokenizer", 151669),
    ],
)
def test_the_size_of_a_shipped_tokenizer_is_what_its_library_says(name: str, size: int) -> None:
    found = find_tokenizer(name, package_dir())
    assert found is not None
    assert read_vocabulary_size(found) == size


def test_a_name_on_the_hub_is_not_on_this_machine() -> None:
    assert find_tokenizer("meta-llama/Llama-3.1-8B", package_dir()) is None
    assert find_tokenizer("gs://bucket/tokenizer.llama2", package_dir()) is None
    assert find_tokenizer("", package_dir()) is None


def test_added_tokens_count(tmp_path: Path) -> None:
    tokenizer = {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 7, "content": "<s>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert read_vocabulary_size(tmp_path) == 8


@pytest.mark.parametrize("content", [b"", b"not a tokenizer", b"\x0a\x7f", b"{}"])
def test_a_file_of_another_kind_gives_no_size(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_vocabulary_size(path) is None
    (tmp_path / "tokenizer.json").write_bytes(content)
    assert read_vocabulary_size(tmp_path) is None
