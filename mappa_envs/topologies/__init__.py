"""Built-in topologies, by name."""

from __future__ import annotations

from envs_registry.errors import ConfigError, did_you_mean
from mappa_envs.topologies.chain import CHAIN
from mappa_envs.topology import Topology

TOPOLOGIES: dict[str, Topology] = {t.name: t for t in (CHAIN,)}


def get_topology(topology: str | Topology) -> Topology:
    """Return a built-in topology by name; a `Topology` is returned as it is.

    Raises:
        ConfigError: If there is no topology of that name.
    """
    if isinstance(topology, Topology):
        return topology
    if topology not in TOPOLOGIES:
        raise ConfigError(
            f"unknown topology {topology!r}",
            expected=f"one of {', '.join(sorted(TOPOLOGIES))}, or a Topology",
            fix=did_you_mean(topology, TOPOLOGIES, "pass a Topology of your own"),
        )
    return TOPOLOGIES[topology]


__all__ = ["TOPOLOGIES", "get_topology"]
