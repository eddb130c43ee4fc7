"""How many turns an episode can have, and what each may write under a budget."""

from __future__ import annotations

from envs_registry.errors import ConfigError
from mappa_envs.flow import Act, Chain, Flow, Layer, Loop, Pick


def most_turns(flow: Flow) -> int:
    """Return the largest number of turns that a flow can come to, over all its agents."""
    match flow:
        case Act():
            return flow.turns
        case Chain() | Layer():
            return sum(map(most_turns, flow.flows))
        case Loop():
            return flow.rounds * most_turns(flow.flow)
        case Pick():
            by_role = {act.role: act.turns for act in flow.choices}
            last = by_role.pop(flow.last)
            # The dearest way: the hub never picks the last role, which then acts unasked.
            return flow.rounds * (1 + max(by_role.values(), default=0)) + last


def tokens_per_turn(budget: int, flow: Flow) -> int:
    """Return what each turn may write so that no episode of a flow can write more than `budget` tokens.

    Raises:
        ConfigError: If that is less than one token.
    """
    turns = most_turns(flow)
    if budget < turns:
        raise ConfigError(
            "max_tokens_per_episode is too small",
            expected=f"at least {turns}: the topology has up to {turns} turns",
            got=str(budget),
            fix="raise it, or leave the topology out",
        )
    return budget // turns
