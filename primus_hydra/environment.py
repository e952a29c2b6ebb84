"""The environment of the child: command line over shell over platform preset over container image."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from primus_hydra.environment_leaks import MAXTEXT_VARIABLE, Leaks, find_leaks
from primus_hydra.environment_notes import describe_conflicts, describe_memory_fraction
from primus_hydra.errors import ConfigError, Problem
from primus_hydra.layers import Decision, Layer, decide_layers
from primus_hydra.redaction import is_secret_name
from primus_hydra.schema import PlatformSettings
from primus_hydra.xla_flags import Flags, check_flag_names, format_flags, parse_flags

OLD_MEM_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
NEW_MEM_FRACTION = "XLA_CLIENT_MEM_FRACTION"
"""jaxlib/xla_client.py refuses to start with both, and calls the one with PYTHON deprecated."""
HOST_DEVICES_FLAG = "xla_force_host_platform_device_count"
_RECORDED = re.compile(
    r"(XLA|JAX|NVTE|HIP|HSA|HIPBLASLT|TENSILE|ROC[MR]?|RCCL|NCCL|GPU|AMD|MIOPEN|MAXTEXT|TF_CPP|OMP)_"
)
"""Variables that can change a run's speed or numbers, and so belong into its record whoever set them."""
_PER_NODE = re.compile(r".*VISIBLE_DEVICES$|JAX_(COORDINATOR|PROCESS|NUM_PROCESSES|LOCAL)_?")
"""Set by a scheduler, different on each node: recorded, but never carried from here to another node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What the child gets on top of this process's own environment."""

    set: dict[str, str]
    """Variables set for the child. May hold secrets that were typed: `split_secrets` takes them out."""
    unset: tuple[str, ...]
    """Variables removed from the child."""
    inherited: dict[str, str]
    """Variables that matter for the run and reach the child as they are; for the record, without secrets."""
    sources: dict[str, str]
    """Variable, or `XLA_FLAGS:<flag>`, -> the layer that decided about it."""
    notes: tuple[Problem, ...]
    """What the user should know about values that lost; all of severity `warn`."""


def layer_environment(
    platform: PlatformSettings,
    *,
    explicit_env: AbstractSet[str],
    explicit_flags: AbstractSet[str],
    inherited: Mapping[str, str],
    image: Mapping[str, str],
    maxtext_assets: Path,
) -> Environment:
    """Decide about every variable and XLA flag of the child.

    Args:
        platform: the composed settings.
        explicit_env: names in `platform.env` that the command line or an experiment set.
        explicit_flags: the same for `platform.xla_flags`.
        inherited: the environment of this process.
        image: what the container image sets, see `read_image_environment`.
        maxtext_assets: existing folder with MaxText's tokenizers.

    Raises:
        ConfigError: names in `platform.env` or `platform.xla_flags` that cannot be set that way, or an
            inherited XLA_FLAGS that XLA would misread.
    """
    if problems := _check_names(platform):
        raise ConfigError(problems)
    leaks = find_leaks(inherited, nodes=platform.nodes, maxtext_assets=maxtext_assets)
    wanted = {"JAX_PLATFORMS": platform.jax_platform, **leaks.wanted, **platform.env}
    variables, notes = _keep_one_memory_fraction(
        decide_layers(
            wanted,
            explicit=explicit_env,
            inherited={name: value for name, value in inherited.items() if name != "XLA_FLAGS"},
            image=image,
            authoritative={"JAX_PLATFORMS", *leaks.wanted},
        )
    )
    variables = {name: item for name, item in variables.items() if name in wanted or _RECORDED.match(name)}
    flags = _decide_flags(platform, explicit_flags, inherited, image)
    return _collect(variables, flags, leaks, platform.name, notes)


def _collect(
    variables: Mapping[str, Decision],
    flags: Mapping[str, Decision],
    leaks: Leaks,
    platform: str,
    notes: tuple[Problem, ...],
) -> Environment:
    """Sort what was decided into what to set, to remove, to leave alone, and to tell."""
    ours, theirs = {}, {}
    for name, item in sorted(variables.items()):
        if not item.removed and _is_set_by_us(name, item):
            ours[name] = str(item.value)
        elif not item.removed and not is_secret_name(name):
            theirs[name] = str(item.value)
    labelled = {**variables, **{f"XLA_FLAGS:{name}": item for name, item in flags.items()}}
    # A rule tells about MaxText's own variables.
    told = {name: item for name, item in labelled.items() if not MAXTEXT_VARIABLE.fullmatch(name)}
    return Environment(
        set=ours | {"XLA_FLAGS": format_flags({name: item.value for name, item in flags.items() if not item.removed})},
        unset=tuple(sorted(name for name, item in variables.items() if item.removed)),
        inherited=theirs,
        sources={
            name: "primus_hydra"
            if name in leaks.wanted and item.layer is Layer.PLATFORM
            else item.layer.describe(platform)
            for name, item in labelled.items()
        },
        notes=(*notes, *describe_conflicts(told, leaks.advice, platform)),
    )


def _decide_flags(
    platform: PlatformSettings, explicit: AbstractSet[str], inherited: Mapping[str, str], image: Mapping[str, str]
) -> dict[str, Decision]:
    """Decide flag by flag; never empty, because MaxText sets its own XLA_FLAGS where it finds none."""
    devices = str(platform.devices_per_node if platform.jax_platform == "cpu" else 1)
    host_devices = {HOST_DEVICES_FLAG: devices} if platform.jax_platform == "cpu" else {}
    flags = decide_layers(
        {**host_devices, **platform.xla_flags},
        explicit=explicit,
        inherited=parse_flags(inherited.get("XLA_FLAGS", ""), origin="XLA_FLAGS in the environment"),
        image=_parse_image_flags(image),
        authoritative={HOST_DEVICES_FLAG},
    )
    if all(decision.removed for decision in flags.values()):
        flags[HOST_DEVICES_FLAG] = Decision(layer=Layer.PLATFORM, removed=False, value=devices)
    return flags


def _parse_image_flags(image: Mapping[str, str]) -> Flags:
    """The image's flags; none where it has a string that is no flags, which the inherited one then repeats."""
    try:
        return parse_flags(image.get("XLA_FLAGS", ""))
    except ConfigError:
        return {}


def _keep_one_memory_fraction(variables: dict[str, Decision]) -> tuple[dict[str, Decision], tuple[Problem, ...]]:
    """Of the two spellings keep the one from the higher layer, or the new one; an empty one counts as absent."""
    new, old = (variables.get(name) for name in (NEW_MEM_FRACTION, OLD_MEM_FRACTION))
    if new is None or old is None or not (new.value and old.value):
        return variables, ()
    winner, loser = (
        (OLD_MEM_FRACTION, NEW_MEM_FRACTION) if old.layer > new.layer else (NEW_MEM_FRACTION, OLD_MEM_FRACTION)
    )
    removed = Decision(layer=variables[winner].layer, removed=True, value=None)
    note = describe_memory_fraction(winner, variables[winner], loser, variables[loser])
    return {**variables, loser: removed}, (note,)


def _is_set_by_us(name: str, decision: Decision) -> bool:
    """Whether the value is written down for the child; a shell's secrets and per-node values only pass through."""
    if decision.layer is Layer.SHELL:
        return not is_secret_name(name) and not _PER_NODE.match(name)
    return decision.layer is not Layer.IMAGE


def _check_names(platform: PlatformSettings) -> list[Problem]:
    """Names that cannot be set this way, all of them."""
    problems = check_flag_names(platform.xla_flags)
    for name in platform.env:
        if MAXTEXT_VARIABLE.fullmatch(name):
            what = f"platform.env.{name} would change a MaxText key behind the configuration's back."
            fix = f"Write the key itself: {name.removeprefix('M_').lower()}=<value>."
        elif name == "XLA_FLAGS":
            what = "platform.env.XLA_FLAGS would hide all other XLA flags of the run."
            fix = "Write one entry per flag: platform.xla_flags.<name>=<value>, or =null to remove one."
        elif not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
            what = f"{name!r} cannot be the name of an environment variable."
            fix = "Write platform.env.<NAME>=<value> with letters, digits and underscores."
        else:
            continue
        problems.append(Problem(what=what, fix=fix))
    return problems
