"""Small teams over the embedded model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mappa_rl.config import TrainConfig
from mappa_rl.policy.base import PolicyRequest, Sampling
from mappa_rl.policy.make import make_team
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.policy.team import Team
from mappa_rl.rollout.row import Row

AGENTS = ("solver_0", "coder_0", "verifier_0")
CHATS = (
    "Find the greatest common divisor of 12 and 18.",
    "Add.",
    "How many positive divisors does 360 have? " * 3,
)


def team_of(*, value_heads: bool = False, agents: Sequence[str] = AGENTS, **policy: object) -> Team:
    """Return the team of some policy settings on the CPU."""
    config = TrainConfig.model_validate({"policy": {"device": "cpu", **policy}, "seed": 1})
    return make_team(config, agents, value_heads=value_heads)


def model_team_of(*, value_heads: bool = False, **policy: object) -> ModelTeam:
    """Return such a team over one base model."""
    team = team_of(value_heads=value_heads, **policy)
    assert isinstance(team, ModelTeam)
    return team


def request(agent: str, text: str) -> PolicyRequest:
    return PolicyRequest(agent, ({"role": "system", "content": "Help."}, {"role": "user", "content": text}))


def requests() -> list[PolicyRequest]:
    return [request(agent, text) for agent in AGENTS for text in CHATS]


def rows_by(team: Team, agent: str, sampling: Sampling) -> list[Row]:
    """Return rows that an agent samples."""
    samples = team.act([request(agent, text) for text in CHATS], sampling, seed=3)
    return [
        Row(s.prompt_ids, s.response_ids, s.logprobs, 0.5, agent, agent[:-2], "ok", s.truncated, i, i, 0, "k", 0.0)
        for i, s in enumerate(samples)
    ]


def shake(team: Team, learner: str, size: float = 0.05) -> None:
    """Move a learner's weights away from their start, where a fresh adapter does nothing."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in team.parameters(learner):
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))
