"""Functions that presets call, such as `${by_platform:{mi300x:4,mi355x:9}}`."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationResolutionError

from primus_hydra.resolvers import maxtext_asset, register_resolvers, sample_path, text_format


@pytest.fixture(scope="module", autouse=True)
def resolvers() -> None:
    register_resolvers()


def resolve(expression: str, name: str, chip: str | None) -> object:
    return OmegaConf.create(
        {"platform": {"name": name, "chip": chip}, "per_device_batch_size": expression}
    ).per_device_batch_size


@pytest.mark.parametrize(
    ("name", "chip", "expected"),
    [
        ("mi300x", "gfx942", 4),
        ("mi355x", "gfx950", 9),
        ("mi325x", "gfx942", 4),
        ("our_cluster", "gfx950", 9),
    ],
)
def test_by_platform_takes_the_value_of_the_platform_or_of_its_chip(name: str, chip: str, expected: int) -> None:
    assert resolve("${by_platform:{mi300x:4,mi355x:9}}", name, chip) == expected


def test_by_platform_prefers_the_exact_platform_to_its_chip() -> None:
    assert resolve("${by_platform:{mi300x:4,mi325x:6}}", "mi325x", "gfx942") == 6


def test_by_platform_falls_back_to_a_default() -> None:
    assert resolve("${by_platform:{mi355x:-1},1}", "mi300x", "gfx942") == 1


def test_by_platform_without_a_value_says_what_is_published_and_what_to_type() -> None:
    with pytest.raises(InterpolationResolutionError) as raised:
        resolve("${by_platform:{mi300x:4,mi355x:9}}", "cpu", None)
    assert str(raised.value).splitlines()[0] == (
        "ValueError raised while resolving interpolation: "
        "no value is published for platform=cpu, only for mi300x and mi355x; "
        "add platform=mi300x, or choose a value yourself with per_device_batch_size=VALUE"
    )


def test_sample_path_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(sample_path("text.txt")).is_file()
    assert Path(sample_path("text.txt")).is_absolute()


def test_maxtext_asset_is_a_file_of_the_installed_maxtext() -> None:
    assert Path(maxtext_asset("tokenizers/tokenizer.gemma3")).is_file()


@pytest.mark.parametrize(
    ("files", "reader"),
    [
        ("corpus.txt", "text"),
        ("notes/*.MD", "text"),
        ("corpus.json", "json"),
        ("/data/part-*.jsonl", "json"),
        ("/data/part-*.jsonl.gz", "json"),
        ("s3://bucket/x.parquet", "parquet"),
    ],
)
def test_text_format_follows_the_ending(files: str, reader: str) -> None:
    assert text_format(files) == reader


@pytest.mark.parametrize("files", ["corpus", "corpus.gz", "corpus.docx", "", None])
def test_text_format_refuses_an_ending_without_a_reader(files: str | None) -> None:
    with pytest.raises(
        ValueError, match=r"hf_train_files=.* has to end in one of \.txt, .*hf_path=text\|json\|parquet"
    ):
        text_format(files)
