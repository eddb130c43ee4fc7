"""`LoraTeam`: one base model in memory, one LoRA adapter per agent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn

from mappa_rl.errors import CheckpointError, PolicyError
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling
from mappa_rl.policy.chat import encode_chat, fit_prompt
from mappa_rl.policy.loading import Base
from mappa_rl.policy.logprobs import response_logprobs
from mappa_rl.policy.sampler import generate
from mappa_rl.rollout.row import Row, micro_batches


class LoraTeam(Policy):
    """A causal language model shared by a team, with an adapter of its own for every agent.

    The reference policy is the same base with the adapters off, so it costs no second model.

    Args:
        base: The loaded model.
        agents: PettingZoo agent ids, one adapter each.
        rank: LoRA rank.
        alpha: LoRA alpha; the update is scaled by `alpha / rank`.
        targets: `all-linear` or the names of the modules to adapt.
        seed: Seeds the adapters' initialisation.
        max_prompt_tokens: Longer prompts are cut in the middle, and the cut is recorded in the sample.
        batch_size: Sequences that are sampled at once.
        gradient_checkpointing: Trade time for memory in training.
    """

    def __init__(
        self,
        base: Base,
        agents: Sequence[str],
        *,
        rank: int = 8,
        alpha: float = 16,
        targets: str | Sequence[str] = "all-linear",
        seed: int = 0,
        max_prompt_tokens: int = 4096,
        batch_size: int = 64,
        gradient_checkpointing: bool = False,
    ) -> None:
        if not agents or len(set(agents)) != len(agents):
            raise PolicyError("a team needs one name per agent", expected="distinct agent ids", got=repr(list(agents)))
        self.base, self.agents = base, tuple(agents)
        self.max_prompt_tokens, self.batch_size = max_prompt_tokens, batch_size
        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=targets if isinstance(targets, str) else list(targets),
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model: PeftModel = get_peft_model(base.model, config, adapter_name=self.agents[0])
            for agent in self.agents[1:]:
                self.model.add_adapter(agent, config)
        if gradient_checkpointing:
            self.model.enable_input_require_grads()
            base.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self.model.eval()

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        device: torch.device = self.base.model.device
        return device

    def parameters(self, agent: str) -> list[nn.Parameter]:
        """Return the adapter parameters of one agent.

        Raises:
            PolicyError: If the team has no such agent.
        """
        self._check(agent)
        return [p for name, p in self.model.named_parameters() if f".{agent}." in name]

    @contextlib.contextmanager
    def acting(self, agent: str) -> Iterator[Any]:
        """Give the model with the adapter of `agent` active."""
        self._check(agent)
        self.model.set_adapter(agent)
        yield self.base.model

    @contextlib.contextmanager
    def reference(self) -> Iterator[Any]:
        """Give the model with all adapters off."""
        with self.model.disable_adapter():
            yield self.base.model

    def act(self, requests: Sequence[PolicyRequest], sampling: Sampling, *, seed: int) -> list[Sample]:
        """Take one turn per request; requests of one agent are sampled together, shortest prompts first.

        Args:
            requests: Turns of any agents of the team.
            sampling: Temperature, top-p and length limit.
            seed: The same requests and seed give the same samples on the same machine.

        Raises:
            PolicyError: If a request names an agent that the team does not have.
        """
        generator = torch.Generator(self.device).manual_seed(seed)
        samples: dict[int, Sample] = {}
        cut = {
            i: fit_prompt(encode_chat(self.base.tokenizer, r.messages), self.max_prompt_tokens)
            for i, r in enumerate(requests)
        }
        for agent in sorted({r.agent for r in requests}):
            mine = sorted((i for i, r in enumerate(requests) if r.agent == agent), key=lambda i: len(cut[i][0]))
            with self.acting(agent) as model:
                for start in range(0, len(mine), self.batch_size):
                    chunk = mine[start : start + self.batch_size]
                    texts = generate(
                        model,
                        [cut[i][0] for i in chunk],
                        sampling,
                        end_ids=self.base.end_ids,
                        pad_id=self.base.pad_id,
                        generator=generator,
                    )
                    for i, made in zip(chunk, texts, strict=True):
                        text = self.decode(made.ids[:-1] if made.ended else made.ids)
                        samples[i] = Sample(
                            text=text,
                            prompt_ids=tuple(cut[i][0]),
                            response_ids=tuple(made.ids),
                            logprobs=tuple(made.logprobs),
                            truncated=not made.ended,
                            prompt_cut=cut[i][1],
                        )
        return [samples[i] for i in range(len(requests))]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of response ids, without special tokens."""
        text: str = self.base.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def logprobs(self, agent: str, rows: Sequence[Row], *, temperature: float) -> Tensor:
        """Return log-probabilities [rows, longest response] of the rows' responses under the agent's adapter.

        Differentiable in the adapter's parameters. Positions after a row's response are 0.
        """
        with self.acting(agent) as model:
            return response_logprobs(model, rows, temperature=temperature, pad_id=self.base.pad_id)

    def reference_logprobs(self, rows: Sequence[Row], *, temperature: float) -> Tensor:
        """Return the same under the reference policy (adapters off), without gradients."""
        with torch.no_grad(), self.reference() as model:
            return response_logprobs(model, rows, temperature=temperature, pad_id=self.base.pad_id)

    def all_reference_logprobs(self, rows: Sequence[Row], *, temperature: float, micro_tokens: int) -> Tensor:
        """Return reference log-probabilities of many rows, computed in micro-batches of similar length."""
        result = torch.zeros((len(rows), max(len(row.response_ids) for row in rows)), device=self.device)
        for group in micro_batches(rows, range(len(rows)), micro_tokens):
            part = self.reference_logprobs([rows[i] for i in group], temperature=temperature)
            result[torch.tensor(group, device=self.device), : part.shape[1]] = part
        return result

    def save(self, folder: Path) -> None:
        """Write each agent's adapter to `folder/<agent>/` in PEFT's own format."""
        self.model.save_pretrained(str(folder), selected_adapters=list(self.agents))

    def load(self, folder: Path) -> None:
        """Replace the adapters' weights by those that `save` wrote.

        Raises:
            CheckpointError: If an agent's adapter is missing or does not fit.
        """
        from peft import load_peft_weights, set_peft_model_state_dict

        for agent in self.agents:
            if not (folder / agent / "adapter_model.safetensors").is_file():
                raise CheckpointError(
                    f"no adapter of {agent!r} in {folder}",
                    expected=f"{folder / agent}/adapter_model.safetensors",
                    fix="give the folder that holds one sub-folder per agent",
                )
            weights = load_peft_weights(str(folder / agent), device=str(self.device))
            try:
                result = set_peft_model_state_dict(self.model, weights, adapter_name=agent)
            except RuntimeError as error:
                raise CheckpointError(
                    f"the adapter of {agent!r} in {folder} does not fit this model",
                    got=str(error).split("\n")[0],
                    fix="use the base model, rank and targets that it was trained with",
                ) from error
            if result.unexpected_keys:
                raise CheckpointError(
                    f"the adapter of {agent!r} in {folder} does not fit this model",
                    got=f"unknown weights {result.unexpected_keys[:3]}",
                )

    def _check(self, agent: str) -> None:
        if agent not in self.agents:
            raise PolicyError(f"the team has no agent {agent!r}", expected=", ".join(self.agents), got=repr(agent))
