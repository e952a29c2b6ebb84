"""Which environment variables hold a secret, so that none reaches a file, a log or a message."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SECRET_ENDINGS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS")
_SECRET_WORDS = frozenset({"KEY", "KEYS", "APIKEY", "APIKEYS"})
SECRET_KEYS = frozenset({"hf_access_token"})
"""MaxText keys that hold a credential: MaxText reads HF_TOKEN itself, so they are never exported."""
HIDDEN = "<hidden>"
_TOKEN_SHAPE = re.compile(r"\bhf_[A-Za-z0-9]{20,}\b")
_MIN_SECRET_LENGTH = 8


def is_secret_setting(name: str) -> bool:
    """Whether an override of this name holds a credential: MaxText's key for one, or a variable named like one."""
    variable = name.removeprefix("platform.env.")
    return name in SECRET_KEYS or (variable != name and "." not in variable and is_secret_name(variable))


def is_secret_name(name: str) -> bool:
    """Whether a variable's value must stay out of everything that we write: HF_TOKEN, WANDB_API_KEY, ...

    The last word decides, so TOKENIZERS_PARALLELISM, MAX_TOKENS and SSH_KEY_DIR are none.
    """
    last = name.upper().rstrip("0123456789").rstrip("_").split("_")[-1]
    return last.endswith(_SECRET_ENDINGS) or last in _SECRET_WORDS


def show_value(name: str, value: str | None) -> str:
    """A variable's value for a message: the value, or a placeholder where it is a secret."""
    return HIDDEN if is_secret_name(name) else str(value)


def split_secrets(variables: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Variables that may be written to a file, and the ones that only the child's environment may hold."""
    public = {name: value for name, value in variables.items() if not is_secret_name(name)}
    secret = {name: value for name, value in variables.items() if is_secret_name(name)}
    return public, secret


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Secrets of an environment, longest first.

    Short values and paths are left out: masking them would garble ordinary words and file names.
    """
    values = {
        value
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= _MIN_SECRET_LENGTH and not value.startswith(("/", "~", "."))
    }
    return sorted(values, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret, and whatever has the shape of a Hugging Face token, by a placeholder."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _TOKEN_SHAPE.sub(HIDDEN, text) if "hf_" in text else text


def redact_all(value: Any, secrets: Sequence[str]) -> Any:
    """Redact every text inside plain data."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return {name: redact_all(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(inner, secrets) for inner in value]
    return value
