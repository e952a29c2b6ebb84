"""Text that OmegaConf must not take for an interpolation."""

import pytest
from omegaconf import OmegaConf

from primus_hydra.interpolation import escape_interpolations

TEXTS = [
    "${x}",
    "a${b",
    r"\${x}",
    r"\\${x}",
    r"a\b ${oc.env:HOME} \c",
    "$${x}",
    "{${x}}",
    r"tail\ ",
    "${a}\\",
    "plain",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_escaped_text_is_resolved_to_itself(text: str) -> None:
    escaped = escape_interpolations({"key": text, "list": [text, {"inner": text}], "number": 3})
    assert OmegaConf.to_container(OmegaConf.create(escaped), resolve=True) == {
        "key": text,
        "list": [text, {"inner": text}],
        "number": 3,
    }
