"""Parameter counts against those of MaxText's own models.

The counts were measured: MaxText 0.2.5, each of its model files, sizes of all nnx.Param of the abstract model.
"""

from functools import cache
from typing import Any

import pytest
import yaml

from primus_hydra.maxtext.keys import package_dir
from primus_hydra.model_size import count_parameters

MEASURED = {
    "deepseek2-16b": 15_706_484_224,
    "deepseek2-236b": 235_741_434_880,
    "deepseek3-671b": 671_026_404_352,
    "deepseek3-671b-2dfsdp": 671_026_404_352,
    "deepseek3-671b-batchsplit": 671_026_404_352,
    "deepseek3-test": 15_851_412_992,
    "deepseek3-tiny": 33_705_520,
    "deepseek3.2-671b": 671_877_929_216,
    "deepseek4-284b": 284_333_639_255,
    "deepseek4-tiny": 27_189_331,
    "envy-switch-base": 22_077_958_656,
    "envy-switch-large": 78_386_454_528,
    "envy-switch-xxl": 396_486_064_128,
    "envy-test": 57_576,
    "gemma-2b": 2_506_434_560,
    "gemma-7b": 8_538_074_112,
    "gemma2-27b": 27_227_718_144,
    "gemma2-2b": 2_614_636_800,
    "gemma2-9b": 9_242_164_736,
    "gemma3-12b": 11_765_788_416,
    "gemma3-27b": 27_009_002_240,
    "gemma3-4b": 3_880_099_328,
    "gemma4-26b": 25_233_141_790,
    "gemma4-31b": 30_697_345_340,
    "gemma4-e2b": 4_628_569_379,
    "gemma4-e4b": 7_463_013_418,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "gpt3-175b": 174_780_997_632,
    "gpt3-22b": 22_049_107_968,
    "gpt3-52k": 52_464,
    "gpt3-6b": 5_588_736_000,
    "kimi-k2-1t": 1_026_408_209_408,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama2-7b": 6_738_415_616,
    "llama3-70b": 70_553_706_496,
    "llama3-8b": 8_030_261_248,
    "llama3.1-405b": 405_853_388_800,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-8b": 8_030_261_248,
    "llama3.3-70b": 70_553_706_496,
    "llama4-17b-128e": 400_711_848_960,
    "llama4-17b-16e": 107_769_861_120,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x22b": 140_630_071_296,
    "mixtral-8x7b": 46_702_792_704,
    "olmo3-32b": 32_233_522_176,
    "olmo3-7b": 7_298_011_136,
    "olmo3-7b-pt": 7_298_011_136,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-1.7b-base": 1_720_574_976,
    "qwen3-14b": 14_768_307_200,
    "qwen3-14b-base": 14_768_307_200,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-30b-a3b-base": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-480b-a35b": 480_154_875_392,
    "qwen3-4b": 4_022_468_096,
    "qwen3-4b-base": 4_022_468_096,
    "qwen3-4b-thinking-2507": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-8b-base": 8_190_735_360,
    "qwen3-custom-30b-a3b": 30_348_146_688,
    "qwen3-next-80b-a3b": 79_674_391_296,
    "qwen3-omni-30b-a3b": 31_719_205_488,
    "qwen3-vl-2b": 2_127_532_032,
    "qwen3-vl-30b-a3b": 31_070_754_032,
    "qwen3-vl-4b": 4_437_815_808,
    "qwen3.5-35b-a3b": 34_660_610_688,
    "qwen3.5-35b-a3b-fp8": 34_662_662_528,
    "qwen3.5-397b-a17b": 396_346_350_336,
    "qwen3.5-397b-a17b-fp8": 396_370_407_936,
}
_ALL_COUNTED = {"llama2-7b", "llama3-8b", "llama3-70b", "mixtral-8x7b", "qwen3-14b", "gpt3-175b", "deepseek2-16b"}
_GROK1 = {
    "decoder_block": "mixtral",
    "base_emb_dim": 6144,
    "base_num_query_heads": 48,
    "base_num_kv_heads": 8,
    "base_mlp_dim": 32768,
    "base_moe_mlp_dim": 32768,
    "base_num_decoder_layers": 64,
    "head_dim": 128,
    "vocab_size": 131072,
    "num_experts": 8,
    "logits_via_embedding": True,
}


@cache
def _read_yaml(name: str) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((package_dir() / "configs" / name).read_text(encoding="utf-8"))
    return settings


def read_model(name: str) -> dict[str, Any]:
    """base.yml and one of MaxText's model files over it."""
    return {**_read_yaml("base.yml"), **_read_yaml(f"models/{name}.yml")}


@pytest.mark.parametrize("name", MEASURED)
def test_the_count_is_within_three_percent_or_a_lower_bound(name: str) -> None:
    size = count_parameters(read_model(name))
    assert size is not None
    error = size.parameters / MEASURED[name] - 1
    assert -0.03 < error < 0.03 or (size.is_lower_bound and error < 0)
    assert not (name in _ALL_COUNTED and size.is_lower_bound)


def test_grok1_from_sizes_alone_has_its_published_314_billion() -> None:
    size = count_parameters({**read_model("mixtral-8x7b"), **_GROK1})
    assert size is not None
    assert size.parameters == pytest.approx(314e9, rel=0.03)


@pytest.mark.parametrize("missing", ["base_emb_dim", "vocab_size", "base_num_decoder_layers"])
def test_a_missing_size_gives_no_count(missing: str) -> None:
    assert count_parameters({**read_model("llama3-8b"), missing: None}) is None


def test_a_scaled_model_is_marked_as_a_lower_bound() -> None:
    size = count_parameters({**read_model("llama3-8b"), "global_parameter_scale": 2})
    assert size is not None
    assert size.is_lower_bound
