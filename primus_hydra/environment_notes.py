"""Warnings about environment values that lost against another layer."""

from collections.abc import Mapping

from primus_hydra.errors import Problem
from primus_hydra.layers import Decision, Layer
from primus_hydra.redaction import show_value


def describe_conflicts(decisions: Mapping[str, Decision], advice: Mapping[str, str], platform: str) -> list[Problem]:
    """One warning for each kind of conflict, with every name and both values; secrets stay hidden.

    Args:
        decisions: variable, or `XLA_FLAGS:<flag>`, -> what was decided.
        advice: variables that are never inherited -> why, or what to write instead.
        platform: name of the preset.
    """
    disputed = {name: decision for name, decision in decisions.items() if decision.rival_layer is not None}
    ours = {name: decision for name, decision in disputed.items() if decision.layer is Layer.PLATFORM}
    refused = {name: decision for name, decision in ours.items() if name in advice}
    demoted = {
        name: decision for name, decision in ours.items() if name not in advice and decision.rival_layer is Layer.SHELL
    }
    replaced = {name: decision for name, decision in ours.items() if name not in refused.keys() | demoted.keys()}
    kept = {
        name: decision
        for name, decision in disputed.items()
        if decision.layer is Layer.SHELL and decision.rival_layer is Layer.PLATFORM
    }
    notes = [_describe_refused(name, decision, advice[name]) for name, decision in refused.items()]
    notes += [_describe_demoted(name, decision, platform) for name, decision in demoted.items()]
    if replaced:
        notes.append(_describe_replaced(replaced, platform))
    if kept:
        notes.append(_describe_kept(kept, platform))
    return notes


def describe_memory_fraction(winner: str, kept: Decision, loser: str, dropped: Decision) -> Problem:
    """Two spellings of one setting were set; jaxlib would refuse to start."""
    return Problem(
        what=f"{winner}={kept.value} is used and {loser}={dropped.value} is removed: they mean the same.",
        allowed="jaxlib accepts only one of the two spellings at a time.",
        fix=f"Unset one of them, or write platform.env.{winner}=<value>.",
        severity="warn",
    )


def _describe_refused(name: str, decision: Decision, advice: str) -> Problem:
    outcome = "removed" if decision.removed else f"replaced by {show_value(name, decision.value)}"
    return Problem(
        what=f"{name}={show_value(name, decision.rival)} in the environment is {outcome} for the run: {advice}.",
        severity="warn",
    )


def _describe_demoted(name: str, decision: Decision, platform: str) -> Problem:
    setting = "platform.devices_per_node=N" if name.startswith("XLA_FLAGS:") else "platform=<another one>"
    return Problem(
        what=f"{_show(name, decision.rival)} in the environment contradicts platform {platform}; "
        f"the run uses {_show(name, decision.value)}.",
        fix=f"Write {setting}, or {_override(name, decision.rival)} to insist.",
        severity="warn",
    )


def _describe_replaced(decisions: Mapping[str, Decision], platform: str) -> Problem:
    changes = ", ".join(f"{_show(name, item.rival)} -> {_outcome(name, item)}" for name, item in decisions.items())
    name, first = next(iter(decisions.items()))
    return Problem(
        what=f"Platform {platform} replaces values that this container was started with: {changes}.",
        fix=f"To keep one, write it on the command line, for example {_override(name, first.rival)} "
        "(values given by `docker run -e` cannot be told from the image's own).",
        severity="warn",
    )


def _describe_kept(decisions: Mapping[str, Decision], platform: str) -> Problem:
    changes = ", ".join(
        f"{_show(name, item.value)} (preset: {show_value(name, item.rival) if item.rival is not None else 'unset'})"
        for name, item in decisions.items()
    )
    return Problem(
        what=f"The shell's values are used instead of the defaults of platform {platform}: {changes}.",
        fix="Unset them in the shell to get the defaults.",
        severity="warn",
    )


def _outcome(name: str, decision: Decision) -> str:
    return "removed" if decision.removed else show_value(name, decision.value)


def _show(label: str, value: str | None) -> str:
    """`NAME=value`, or `--flag=value` for the label of an XLA flag."""
    name = label.removeprefix("XLA_FLAGS:")
    text = name if value is None else f"{name}={show_value(name, value)}"
    return f"--{text}" if label.startswith("XLA_FLAGS:") else text


def _override(label: str, value: str | None) -> str:
    """The command-line override that gives this value to a variable or flag."""
    name = label.removeprefix("XLA_FLAGS:")
    group = "env" if label == name else "xla_flags"
    return f"platform.{group}.{name}={'null' if value is None else show_value(name, value)}"
