"""Several nodes: what MaxText needs in the environment so that they train together."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from primus_hydra.rules.context import MISSING, RuleContext

_VARIABLES = ("JAX_COORDINATOR_IP", "JAX_COORDINATOR_PORT", "NNODES", "NODE_RANK")
"""What `initialize_jax_for_gpu` of MaxText's max_utils.py reads."""
_HIGHEST_PORT = 65535


def find_unready_coordinator(context: RuleContext) -> Iterator[dict[str, Any]]:
    """Variables that are missing, contradict platform.nodes, or name a coordinator that other nodes cannot reach."""
    nodes = context.platform.nodes
    env = {name: context.look_up(f"env.{name}") for name in _VARIABLES}
    missing = [name for name, value in env.items() if value in (MISSING, "")]
    skipped = context.effective.get("skip_jax_distributed_system") is True
    facts = ["skip_jax_distributed_system=true keeps them apart"] if skipped else []
    if missing:
        facts.append(f"{_join(missing)} {'is' if len(missing) == 1 else 'are'} not set")
    facts += [fact for name in _VARIABLES if name not in missing and (fact := _contradict(name, env[name], nodes))]
    if not facts:
        return
    alone = skipped or env["JAX_COORDINATOR_IP"] is MISSING
    yield {
        "facts": "; ".join(facts),
        "outcome": "MaxText would train on every node alone, without an error."
        if alone
        else "The nodes would fail, or wait for each other until a time limit ends them.",
        "advice": "Write skip_jax_distributed_system=false. " if skipped else "",
        "last_rank": nodes - 1,
    }


def _contradict(name: str, value: str, nodes: int) -> str:
    """What is wrong with one variable that is set; empty if nothing."""
    number = int(value) if value.isascii() and value.isdigit() else None
    match name:
        case "JAX_COORDINATOR_IP" if _is_this_machine_only(value):
            return f"{name}={value} is an address that other nodes cannot reach"
        case "JAX_COORDINATOR_PORT" if number is None or not 0 < number <= _HIGHEST_PORT:
            return f"{name}={value} is not a port (1 to {_HIGHEST_PORT})"
        case "NNODES" if number != nodes:
            return f"{name}={value} is not platform.nodes={nodes}"
        case "NODE_RANK" if number is None or number >= nodes:
            return f"{name}={value} is not a whole number from 0 to {nodes - 1}"
    return ""


def _is_this_machine_only(host: str) -> bool:
    """Loopback or unspecified, as a name or a number; names that need a look-up are taken as they are."""
    if host.lower() in ("localhost", "localhost.localdomain"):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
