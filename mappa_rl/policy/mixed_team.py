"""`MixedTeam`: agents with different base models, or scripts, as one team."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from mappa_rl.errors import PolicyError
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling
from mappa_rl.policy.team import Team, TokenOutput
from mappa_rl.rollout.row import Row


class MixedTeam(Team):
    """Passes each agent's turns and rows to the policy that plays it.

    Args:
        players: Each agent's policy. Agents of a `Team` learn as it says, others never.

    Raises:
        PolicyError: If two teams have a learner of the same name.
    """

    def __init__(self, players: Mapping[str, Policy]) -> None:
        self.players, self.agents = dict(players), tuple(players)
        policies = list(dict.fromkeys(players.values()))
        self.teams = [policy for policy in policies if isinstance(policy, Team)]
        self.learners = {name: agents for team in self.teams for name, agents in team.learners.items()}
        if len(self.learners) < sum(len(team.learners) for team in self.teams):
            raise PolicyError("two teams have a learner of the same name", got=", ".join(self.learners))
        self.device = self.teams[0].device if self.teams else torch.device("cpu")

    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        """Take one turn per request.

        Raises:
            PolicyError: If a request names an agent that the team does not have.
        """
        samples: dict[int, Sample] = {}
        for policy in dict.fromkeys(self._player(request.agent) for request in requests):
            mine = [i for i, request in enumerate(requests) if self._player(request.agent) is policy]
            made = policy.act([requests[i] for i in mine], sampling, seed=seed)
            samples |= dict(zip(mine, made, strict=True))
        return [samples[i] for i in range(len(requests))]

    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return what a learner's optimiser moves."""
        return self._team(learner).parameters(learner)

    def forward(self, learner: str, rows: Sequence[Row], *, temperature: float) -> TokenOutput:
        """Return log-probabilities and values with gradients, on the device of the learner's model."""
        return self._team(learner).forward(learner, rows, temperature=temperature)

    def reference_logprobs(self, rows: Sequence[Row], *, temperature: float, micro_tokens: int) -> Tensor:
        """Return log-probabilities `[rows, longest response]` under the weights that training started from."""
        return self._gather(
            rows, lambda team, part: team.reference_logprobs(part, temperature=temperature, micro_tokens=micro_tokens)
        )

    def values(self, rows: Sequence[Row], *, micro_tokens: int) -> Tensor:
        """Return the value heads' values `[rows, longest response]`."""
        return self._gather(rows, lambda team, part: team.values(part, micro_tokens=micro_tokens))

    def save(self, folder: Path) -> None:
        """Write each learner's weights to `folder/<learner>/`."""
        for team in self.teams:
            team.save(folder)

    def load(self, folder: Path) -> None:
        """Replace the learners' weights by those that `save` wrote."""
        for team in self.teams:
            team.load(folder)

    def _gather(self, rows: Sequence[Row], compute: Callable[[Team, Sequence[Row]], Tensor]) -> Tensor:
        result = torch.zeros((len(rows), max((len(row.response_ids) for row in rows), default=0)), device=self.device)
        for team in self.teams:
            mine = [i for i, row in enumerate(rows) if self.players[row.agent] is team]
            if mine:
                part = compute(team, [rows[i] for i in mine]).to(self.device)
                result[torch.tensor(mine, device=self.device), : part.shape[1]] = part
        return result

    def _player(self, agent: str) -> Policy:
        if agent not in self.players:
            raise PolicyError(f"the team has no agent {agent!r}", expected=", ".join(self.agents), got=repr(agent))
        return self.players[agent]

    def _team(self, learner: str) -> Team:
        for team in self.teams:
            if learner in team.learners:
                return team
        raise PolicyError(f"the team has no learner {learner!r}", expected=", ".join(self.learners), got=repr(learner))
