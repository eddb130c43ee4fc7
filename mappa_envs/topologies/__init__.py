"""Built-in topologies, and finding topologies by name."""

from mappa_envs.topologies.chain import CHAIN
from mappa_envs.topologies.domain import Domain, Job
from mappa_envs.topologies.lookup import get_domain, get_topology, register_topology, topology_names
from mappa_envs.topologies.maths import MATHS

__all__ = [
    "CHAIN",
    "MATHS",
    "Domain",
    "Job",
    "get_domain",
    "get_topology",
    "register_topology",
    "topology_names",
]
