"""`ModelTeam`: a team that plays with one base model and one kind of weights over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mappa_rl.errors import CheckpointError, PolicyError
from mappa_rl.policy.base import PolicyRequest, Sample, Sampling
from mappa_rl.policy.chat import ChatFormat
from mappa_rl.policy.loading import Base
from mappa_rl.policy.logprobs import response_outputs
from mappa_rl.policy.sampler import generate
from mappa_rl.policy.sharding import Turn, no_turns
from mappa_rl.policy.team import Team, TokenOutput
from mappa_rl.policy.weights import Weights
from mappa_rl.rollout.row import Row, micro_batches

VALUE_HEAD_FILE = "value_head.safetensors"


class ModelTeam(Team):
    """Agents that play with the weights of their learners, or with the base where they have none.

    Args:
        base: The loaded model.
        agents: PettingZoo agent ids.
        weights: Who learns, and what.
        chat: How chats become token ids and ids become actions.
        batch_size: Sequences that are sampled at once.
        value_heads: Give each learner a linear map from its states to values, which starts at 0.
        autocast: Compute in bfloat16 where torch's autocast does; weights keep their type.
        turn: Called before every pass through the model, see `sharding`.

    Raises:
        PolicyError: If agents are missing or double.
    """

    def __init__(
        self,
        base: Base,
        agents: Sequence[str],
        weights: Weights,
        *,
        chat: ChatFormat | None = None,
        batch_size: int = 64,
        value_heads: bool = False,
        autocast: bool = False,
        turn: Turn = no_turns,
    ) -> None:
        if not agents or len(set(agents)) != len(agents):
            raise PolicyError("a team needs one name per agent", expected="distinct agent ids", got=repr(list(agents)))
        self.base, self.agents, self.weights, self.learners = base, tuple(agents), weights, weights.learners
        self.chat, self.batch_size, self.autocast = chat or ChatFormat(), batch_size, autocast
        self._turn = turn
        self.device = torch.device(base.model.device)
        self.value_heads: dict[str, nn.Linear] = {}
        for learner in self.learners if value_heads else ():
            head = nn.Linear(base.model.config.get_text_config().hidden_size, 1, device=self.device)
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
            self.value_heads[learner] = head

    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        """Take one turn per request; requests to the same weights are sampled together, shortest prompts first.

        Args:
            requests: Turns of any agents of the team.
            sampling: Temperature, top-p and length limit.
            seed: The same requests and seed give the same samples on the same machine.

        Raises:
            PolicyError: If a request names an agent that the team does not have.
        """
        generator = torch.Generator(self.device).manual_seed(seed)
        for agent in {request.agent for request in requests} - set(self.agents):
            raise PolicyError(f"the team has no agent {agent!r}", expected=", ".join(self.agents), got=repr(agent))
        prompts = [self.chat.encode(self.base.tokenizer, request.messages) for request in requests]
        samples: dict[int, Sample] = {}
        for learner, mine in self._by_learner([request.agent for request in requests]):
            mine = sorted(mine, key=lambda i: len(prompts[i].ids))
            with self.weights.playing(learner) as model, self._precision():
                for start in range(0, len(mine), self.batch_size):
                    chunk = mine[start : start + self.batch_size]
                    made = generate(
                        model,
                        [prompts[i].ids for i in chunk],
                        sampling,
                        end_ids=self.base.end_ids,
                        pad_id=self.base.pad_id,
                        generator=generator,
                        turn=self._turn,
                    )
                    for i, one in zip(chunk, made, strict=True):
                        samples[i] = Sample(
                            text=self.chat.decode(
                                self.base.tokenizer, one.ids[:-1] if one.ended else one.ids, prompts[i]
                            ),
                            prompt_ids=tuple(prompts[i].ids),
                            response_ids=tuple(one.ids),
                            logprobs=tuple(one.logprobs),
                            truncated=not one.ended,
                            prompt_cut=prompts[i].cut,
                        )
        return [samples[i] for i in range(len(requests))]

    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return what a learner's optimiser moves: its weights and its value head.

        Raises:
            PolicyError: If the team has no such learner.
        """
        self._check(learner)
        head = self.value_heads.get(learner)
        return [*self.weights.parameters(learner), *(head.parameters() if head is not None else ())]

    def forward(self, learner: str, rows: Sequence[Row], *, temperature: float) -> TokenOutput:
        """Return log-probabilities of rows under a learner's weights, and values, with gradients.

        Raises:
            PolicyError: If the team has no such learner.
        """
        self._check(learner)
        with self.weights.playing(learner) as model, self._precision():
            return self._outputs(model, rows, temperature, self.value_heads.get(learner))

    def reference_logprobs(self, rows: Sequence[Row], *, temperature: float, micro_tokens: int) -> Tensor:
        """Return log-probabilities `[rows, longest response]` under the weights that training started from."""

        def one(learner: str | None, part: Sequence[Row]) -> Tensor:
            with self.weights.reference(learner) as model:
                return self._outputs(model, part, temperature, None).logprobs

        return self._in_parts(rows, micro_tokens, one)

    def values(self, rows: Sequence[Row], *, micro_tokens: int) -> Tensor:
        """Return the value heads' values `[rows, longest response]`, without gradients.

        Raises:
            PolicyError: If the team has no value heads.
        """
        if not self.value_heads:
            raise PolicyError("the team has no value heads", fix="make it with value_heads=True")

        def one(learner: str | None, part: Sequence[Row]) -> Tensor:
            values = self.forward(learner or "", part, temperature=1.0).values
            return torch.empty(0) if values is None else values

        return self._in_parts(rows, micro_tokens, one)

    def save(self, folder: Path) -> None:
        """Write each learner's weights to `folder/<learner>/`: adapters in PEFT's format, models in transformers'."""
        for learner in self.learners:
            self.weights.save(learner, folder / learner)
        for learner, head in self.value_heads.items():
            save_file(
                {name: p.detach().cpu() for name, p in head.named_parameters()}, folder / learner / VALUE_HEAD_FILE
            )

    def load(self, folder: Path) -> None:
        """Replace the learners' weights by those that `save` wrote.

        Raises:
            CheckpointError: If a learner's weights are missing or do not fit.
        """
        for learner in self.learners:
            self.weights.load(learner, folder / learner)
        for learner, head in self.value_heads.items():
            path = folder / learner / VALUE_HEAD_FILE
            try:
                head.load_state_dict(load_file(path, device=str(self.device)))
            except (OSError, RuntimeError) as error:
                raise CheckpointError(
                    f"the value head {path} cannot be read",
                    expected=f"weights [1, {head.in_features}]",
                    got=str(error).split("\n")[0],
                    fix="use the model and the algorithm that it was trained with",
                ) from error

    def _outputs(self, model: Any, rows: Sequence[Row], temperature: float, head: nn.Module | None) -> TokenOutput:
        self._turn()
        return response_outputs(model, rows, temperature=temperature, pad_id=self.base.pad_id, value_head=head)

    def _in_parts(
        self, rows: Sequence[Row], micro_tokens: int, compute: Callable[[str | None, Sequence[Row]], Tensor]
    ) -> Tensor:
        """Compute `[rows, longest response]` without gradients, in micro-batches of one learner and similar length."""
        result = torch.zeros((len(rows), max((len(row.response_ids) for row in rows), default=0)), device=self.device)
        with torch.no_grad(), self._precision():
            for learner, mine in self._by_learner([row.agent for row in rows]):
                for group in micro_batches(rows, mine, micro_tokens):
                    part = compute(learner, [rows[i] for i in group])
                    result[torch.tensor(group, device=self.device), : part.shape[1]] = part
        return result

    def _by_learner(self, agents: Sequence[str]) -> Iterator[tuple[str | None, list[int]]]:
        """Yield each learner that is due, in order of name, and the places of its agents; None first."""
        of = [self.learner_of(agent) for agent in agents]
        for learner in sorted(set(of), key=lambda name: name or ""):
            yield learner, [i for i, name in enumerate(of) if name == learner]

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast)

    def _check(self, learner: str) -> None:
        if learner not in self.learners:
            known = ", ".join(self.learners) or "none: all agents are frozen"
            raise PolicyError(f"the team has no learner {learner!r}", expected=known, got=repr(learner))
