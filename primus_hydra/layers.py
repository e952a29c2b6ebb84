"""Which layer decides about one environment variable or one XLA flag."""

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path


class Layer(IntEnum):
    """Where a value comes from; the higher layer wins."""

    IMAGE = 0
    """Baked into the container image."""
    PLATFORM = 1
    """Default of the platform preset."""
    SHELL = 2
    """Set by the user in the shell, or by a scheduler."""
    EXPLICIT = 3
    """Typed on the command line or written in an experiment."""

    def describe(self, platform: str) -> str:
        """The layer as a person calls it; `platform` is the name of the preset."""
        names = ("container image", f"platform {platform}", "shell", "command line or experiment")
        return names[self]


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What happens to one variable or flag."""

    layer: Layer
    """The layer that decided."""
    removed: bool
    """Whether that layer removes the name; `value` means nothing then."""
    value: str | None
    """The value as written; None for an XLA flag without `=`."""
    rival: str | None = None
    """What the losing layer wanted instead, where that differs; None also means "nothing"."""
    rival_layer: Layer | None = None
    """The layer that lost; None where nobody disagreed."""


def decide_layers(
    wanted: Mapping[str, str | None],
    *,
    explicit: AbstractSet[str],
    inherited: Mapping[str, str | None],
    image: Mapping[str, str | None],
    authoritative: AbstractSet[str] = frozenset(),
) -> dict[str, Decision]:
    """Decide about every name, in the order inherited names first, then the ones we add.

    That order makes layering repeatable: a second pass over its own result changes nothing.

    Args:
        wanted: what the composed configuration says, null removes the name.
        explicit: names in `wanted` that the command line or an experiment set.
        inherited: what this process was started with.
        image: what the container image sets; an inherited value that equals it counts as the image's.
        authoritative: names in `wanted` that the shell may not change, because other parts of the
            configuration rely on them.
    """
    names = dict.fromkeys([*inherited, *wanted])
    return {name: _decide(name, wanted, explicit, inherited, image, authoritative) for name in names}


def _decide(
    name: str,
    wanted: Mapping[str, str | None],
    explicit: AbstractSet[str],
    inherited: Mapping[str, str | None],
    image: Mapping[str, str | None],
    authoritative: AbstractSet[str],
) -> Decision:
    baked = name in inherited and name in image and image[name] == inherited[name]
    outer = Layer.IMAGE if baked else Layer.SHELL
    if name not in wanted:
        return Decision(layer=outer, removed=False, value=inherited[name])
    ours = Decision(
        layer=Layer.EXPLICIT if name in explicit else Layer.PLATFORM, removed=wanted[name] is None, value=wanted[name]
    )
    if name not in inherited:
        return ours
    theirs = Decision(layer=outer, removed=False, value=inherited[name])
    winner, loser = (ours, theirs) if name in authoritative or ours.layer > outer else (theirs, ours)
    if (winner.removed, winner.value) == (loser.removed, loser.value):
        return winner
    return Decision(
        layer=winner.layer,
        removed=winner.removed,
        value=winner.value,
        rival=loser.value,
        rival_layer=loser.layer,
    )


def read_image_environment(process: Path = Path("/proc/1")) -> dict[str, str]:
    """What the container's first process was started with: the image's variables and `docker run -e` ones.

    Those two cannot be told apart from inside. Empty where it may not be read, and on a machine whose
    first process is an ordinary init, which says nothing about an image.
    """
    try:
        if (process / "comm").read_text(encoding="utf-8").strip() in ("systemd", "init"):
            return {}
        entries = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if b"=" in entry)
    return {name: value for name, _, value in pairs}
