"""The text of XLA_FLAGS: take it apart as XLA does, write it again, and ask XLA whether it accepts it.

XLA reads the variable with rules of its own (xla/parse_flags_from_env.cc): a flag is dashes, letters,
digits and underscores; a value in quotes may contain blanks; the last occurrence of a flag wins; reading
stops without a word at the first thing that is not a flag. Flags here are a dict of name (without the
leading dashes) -> value as written, quotes included; None is a flag without `=`.
"""

import re
from collections.abc import Iterable, Mapping

from primus_hydra.errors import ConfigError, Problem

Flags = dict[str, str | None]

_TOKEN = re.compile(
    r"""--(?P<name>[\w-]+)(?:=(?P<value>'[^']*'|"(?:\\.|[^"\\])*"|(?!['"])[^ \t\r\n]*))?(?=[ \t\r\n]|\Z)""",
    flags=re.ASCII | re.DOTALL,
)
_BLANKS = " \t\r\n"
_NAME = re.compile(r"[\w-]+", flags=re.ASCII)
_EXAMPLE = "--xla_gpu_autotune_level=4 --xla_gpu_enable_command_buffer=''"


def parse_flags(text: str, origin: str = "") -> Flags:
    """Take an XLA_FLAGS string apart, in order; the last occurrence of a flag wins.

    Args:
        text: the string; may be empty.
        origin: where the string came from, for the error.

    Raises:
        ConfigError: something in it is not a flag. XLA would take the whole string for a file name, or
            silently ignore the rest of it.
    """
    flags: Flags = {}
    rest = text.strip(_BLANKS)
    while rest:
        match = _TOKEN.match(rest)
        if match is None:
            raise ConfigError([_not_a_flag(rest, is_first=not flags, origin=origin)])
        flags[match["name"]] = match["value"]
        rest = rest[match.end() :].lstrip(_BLANKS)
    return flags


def format_flags(flags: Mapping[str, str | None]) -> str:
    """Write flags as one XLA_FLAGS string that `parse_flags` and XLA read back as the same flags."""
    return " ".join(format_flag(name, value) for name, value in flags.items())


def format_flag(name: str, value: str | None) -> str:
    """One flag with its dashes; a value that XLA would not read as one piece is put into quotes."""
    if value is None:
        return f"--{name}"
    flag = f"--{name}={value}"
    if _TOKEN.fullmatch(flag):
        return flag
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'--{name}="{escaped}"'


def check_flag_names(names: Iterable[str]) -> list[Problem]:
    """One problem for every name that cannot be a flag, such as one typed with a blank in it."""
    return [
        Problem(
            what=f"{name!r} cannot be the name of an XLA flag.",
            allowed="A name has letters, digits, underscores and dashes, and no leading dashes here.",
            fix="Write platform.xla_flags.<name>=<value>, for example platform.xla_flags.xla_gpu_autotune_level=5.",
        )
        for name in names
        if not _NAME.fullmatch(name) or name.startswith("-")
    ]


def _not_a_flag(rest: str, *, is_first: bool, origin: str) -> Problem:
    word = re.split(r"[ \t\r\n]", rest, maxsplit=1)[0]
    consequence = (
        "XLA would take the whole string for the name of a file and end the process"
        if is_first and not rest.startswith("-")
        else "XLA would silently ignore it and every flag after it, or end the process"
    )
    return Problem(
        what=f"{word!r} in XLA_FLAGS is not a flag: {consequence}.",
        allowed=f"Every flag starts with two dashes and has no blank around `=`, for example: {_EXAMPLE}",
        fix="Correct or unset XLA_FLAGS; to add a flag to a run, write platform.xla_flags.<name>=<value>.",
        origin=origin,
    )
