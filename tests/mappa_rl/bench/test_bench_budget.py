from __future__ import annotations

import pytest

from envs_registry.errors import ConfigError
from mappa_envs.flow import Act, Chain, Flow, Layer, Loop, Pick
from mappa_rl.bench.budget import most_turns, tokens_per_turn


@pytest.mark.parametrize(
    ("flow", "turns"),
    [
        (Act("solver"), 1),
        (Chain((Act("solver"), Act("coder", turns=2, stop_when="code_ok"), Act("verifier"))), 4),
        (Chain((Loop(Layer((Act("debater"), Act("debater", seat=1))), rounds=3), Act("arbiter"))), 7),
        # Four picks of the coder with its two turns, then the verifier unasked: 4 * (1 + 2) + 1.
        (Pick("hub", (Act("coder", turns=2), Act("solver"), Act("verifier")), last="verifier", rounds=4), 13),
        (Pick("hub", (Act("verifier"),), last="verifier", rounds=2), 3),
    ],
)
def test_the_most_turns_of_a_flow(flow: Flow, turns: int) -> None:
    assert most_turns(flow) == turns


def test_a_budget_is_split_evenly_and_never_exceeded() -> None:
    flow = Chain((Act("solver"), Act("coder", turns=2)))
    assert tokens_per_turn(100, flow) == 33
    assert tokens_per_turn(3, flow) == 1
    with pytest.raises(ConfigError, match="max_tokens_per_episode") as caught:
        tokens_per_turn(2, flow)
    assert "at least 3" in caught.value.expected
