"""Variables by which another run, an old session or another tool would reach into this run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAXTEXT_VARIABLE = re.compile(r"M_[A-Z0-9_]+")
"""MaxText reads `M_<KEY>` for each of its keys and lets it beat the YAML file (configs/pyconfig.py)."""
_NEVER = {
    "JAX_PLATFORM_NAME": "it is an old way to choose the backend, which platform.jax_platform decides",
    "JAX_NUM_CPU_DEVICES": "write platform.devices_per_node=N instead",
    "JAX_COMPILATION_CACHE_DIR": "write jax_cache_dir=FOLDER instead, which is compared and recorded",
}
_ON_SEVERAL_NODES = ("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_IP", "JAX_COORDINATOR_PORT")
"""With one of these set, MaxText waits for the other nodes of a run that has none."""
_ASSETS = "MAXTEXT_ASSETS_ROOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaks:
    """What the child must not inherit."""

    wanted: dict[str, str | None]
    """Variable -> the value that we set instead; None removes it."""
    advice: dict[str, str]
    """Variable -> why it is not inherited, or what to write instead; the end of a sentence."""


def find_leaks(inherited: Mapping[str, str], *, nodes: int, maxtext_assets: Path) -> Leaks:
    """Variables of this environment to remove or replace in the child, each with a reason.

    Args:
        inherited: the environment of this process.
        nodes: nodes that the run spans.
        maxtext_assets: existing folder with MaxText's tokenizers; always set, since MaxText's own
            default does not exist when it was installed by pip.
    """
    advice = {name: reason for name, reason in _NEVER.items() if name in inherited}
    if nodes == 1:
        reason = "the run has one node; write platform.nodes=N for more"
        advice |= {name: reason for name in _ON_SEVERAL_NODES if name in inherited}
    wanted: dict[str, str | None] = dict.fromkeys(advice)
    # The rule stray_maxtext_variable tells about these.
    wanted |= dict.fromkeys(name for name in inherited if MAXTEXT_VARIABLE.fullmatch(name))
    assets = inherited.get(_ASSETS)
    if not assets or not Path(assets).is_dir():
        wanted[_ASSETS] = str(maxtext_assets)
        advice[_ASSETS] = "there is no such folder"
    return Leaks(wanted=wanted, advice=advice)
