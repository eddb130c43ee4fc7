"""Topologies by name: the built-in ones, those of other packages, and your own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from envs_registry.entry_points import check_kwargs, load_module
from envs_registry.errors import ConfigError, did_you_mean
from mappa_envs.topologies.debate import debate
from mappa_envs.topologies.domain import Domain
from mappa_envs.topologies.maths import MATHS
from mappa_envs.topologies.mixture import mixture
from mappa_envs.topologies.pipeline import tables
from mappa_envs.topologies.prover_verifier import prover_verifier
from mappa_envs.topologies.solo import solo
from mappa_envs.topologies.star import star
from mappa_envs.topology import Topology

GROUP = "mappa.topologies"
"""Entry points of other distributions: `name = module:ATTRIBUTE`."""

Plan = Topology | Callable[..., Topology]
"""A topology, or a function `f(domain, *, ...) -> Topology` with keyword parameters."""


def specialists(domain: Domain = MATHS) -> Topology:
    """Return the domain's own team: specialists who act one after the other."""
    return domain.team


_plans: dict[str, Plan] = {
    "solo": solo,
    "chain": specialists,
    "debate": debate,
    "mixture": mixture,
    "prover_verifier": prover_verifier,
    "star": star,
}


DOMAINS = {domain.name: domain for domain in (MATHS, tables())}


def get_domain(name: str) -> Domain:
    """Return a domain by name.

    Raises:
        ConfigError: If there is none of that name.
    """
    if name not in DOMAINS:
        raise ConfigError(
            f"unknown domain {name!r}", expected=f"one of {', '.join(DOMAINS)}", fix=did_you_mean(name, DOMAINS)
        )
    return DOMAINS[name]


def register_topology(name: str, plan: Plan) -> None:
    """Make a topology known by a name, in this process.

    Other processes know it as `module:NAME`, or through an entry point of the group `mappa.topologies`.

    Args:
        name: What `make(topology=name)` will find.
        plan: A topology, or a function `f(domain, *, ...) -> Topology`.

    Raises:
        ConfigError: If the name is taken by another topology, or `plan` is neither.
    """
    if not isinstance(name, str) or not name or ":" in name:
        raise ConfigError("bad topology name", expected="a name without ':'", got=repr(name))
    if name in topology_names() and _plans.get(name) != plan:
        raise ConfigError(f"topology {name!r} is already registered", fix="choose another name")
    _plans[name] = _checked(plan, name)


def topology_names() -> list[str]:
    """Return all names that `get_topology` knows."""
    return sorted({*_plans, *entry_points(group=GROUP).names})


def get_topology(topology: str | Mapping[str, Any] | Topology, domain: Domain = MATHS) -> Topology:
    """Return a topology.

    Args:
        topology: A name, `module:ATTRIBUTE`, a mapping of `name` and parameters
            (`{"name": "debate", "rounds": 3}`), or a `Topology`, which is returned as it is.
        domain: What named topologies take the jobs of their seats from.

    Raises:
        ConfigError: If there is none of that name, or it takes no such parameters.
        EntryPointError: If its module cannot be imported.
    """
    if isinstance(topology, Topology):
        return topology
    if isinstance(topology, str):
        topology = {"name": topology}
    if not isinstance(topology, Mapping) or not isinstance(topology.get("name"), str):
        raise ConfigError(
            "topology is of the wrong type",
            expected="a name, a mapping with a 'name', or a Topology",
            got=repr(topology),
        )
    name = topology["name"]
    parameters = {key: value for key, value in topology.items() if key != "name"}
    plan = _find(name)
    if isinstance(plan, Topology):
        if parameters:
            raise ConfigError(f"topology {name!r} takes no parameters", got=", ".join(parameters))
        return plan
    check_kwargs(functools.partial(plan, domain), parameters, env_id=f"topology {name!r}")
    made = plan(domain, **parameters)
    if not isinstance(made, Topology):
        raise ConfigError(f"topology {name!r} made something else", expected="a Topology", got=repr(made))
    return made


def _find(name: str) -> Plan:
    if name in _plans:
        return _plans[name]
    if ":" in name:
        return _load(name, name)
    for point in entry_points(group=GROUP, name=name):
        return _load(point.value, name)
    raise ConfigError(
        f"unknown topology {name!r}",
        expected=f"one of {', '.join(topology_names())}, 'module:NAME' or a Topology",
        fix=did_you_mean(name, topology_names(), "pass a Topology of your own"),
    )


def _load(target: str, name: str) -> Plan:
    module_name, _, attribute = target.partition(":")
    module = load_module(module_name, why=f"topology {name!r}")
    if not hasattr(module, attribute):
        raise ConfigError(
            f"module {module_name!r} has no {attribute!r}",
            expected=f"the topology that {target!r} names",
            fix=did_you_mean(attribute, vars(module), "correct the name"),
        )
    return _checked(getattr(module, attribute), name)


def _checked(plan: object, name: str) -> Plan:
    if isinstance(plan, Topology) or inspect.isfunction(plan):
        return plan
    raise ConfigError(f"{name!r} is no topology", expected="a Topology, or a function that makes one", got=repr(plan))
