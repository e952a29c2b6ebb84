"""What counts as a secret, and that it stays hidden."""

import pytest

from primus_hydra.redaction import is_secret_name, redact, secret_values, show_value, split_secrets


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "github_token", "GITHUBTOKEN", "MY_TOKEN2"],
)
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert is_secret_name(name)
    assert show_value(name, "SENTINEL") == "<hidden>"


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "XLA_FLAGS", "KEYBOARD", "MAX_TOKENS", "SECRET_BACKEND", "SSH_KEY_DIR", "MONKEY"]
)
def test_ordinary_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)
    assert show_value(name, "1") == "1"


def test_split_secrets_loses_nothing() -> None:
    assert split_secrets({"HF_TOKEN": "t", "NVTE_FUSED_ATTN": "1"}) == ({"NVTE_FUSED_ATTN": "1"}, {"HF_TOKEN": "t"})


def test_redact_hides_known_values_and_what_looks_like_a_token() -> None:
    secrets = secret_values(
        {"HF_TOKEN": "SENTINEL_LONG", "SHORT_KEY": "abc", "KEY_TOKEN": "/some/where", "HOME": "/root/home"}
    )
    shaped = "hf_" + "a" * 30
    assert redact(f"x=SENTINEL_LONG y={shaped} abc /some/where", secrets) == "x=<hidden> y=<hidden> abc /some/where"
