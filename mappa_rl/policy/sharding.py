"""Base models that are split over processes by PyTorch's FSDP2 or DeepSpeed's ZeRO-3: too large to be held by each.

Every process holds a part of each decoder layer of the base and gathers a layer while it computes with it. So all
processes must compute the same layers equally often, whatever each of them plays and learns: `Sharding` keeps them
in step, and lets those that have nothing to compute take part with a token of padding. Adapters, value heads,
embeddings and the output layer are small and stay whole in each process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

from envs_registry.extras import import_extra
from mappa_rl.errors import ConfigError
from mappa_rl.policy.loading import Base
from mappa_rl.policy.logprobs import recomputing_layers

Turn = Callable[[], None]
"""Called before every pass through a model: waits until all processes compute with it, be it padding."""


def no_turns() -> None:
    """Do nothing: a whole model is computed with at any time."""


@dataclass(frozen=True, slots=True)
class ShardingConfig:
    """What accelerate's settings say, as far as it concerns a base that does not learn."""

    engine: Literal["fsdp", "deepspeed"] = "fsdp"
    reshard_after_forward: bool = True
    """FSDP: drop a layer's other parts after its forward pass, and gather them again for the backward pass."""
    offload: bool = False
    """Keep the parts in main memory."""


class Sharding:
    """Splits base models, and keeps the processes in step that compute with them.

    All processes make the same calls of `split`, in the same order. A pass through a split model begins with its
    turn; before anything else that is collective, each process calls `drain`.

    Args:
        config: How models are split.
    """

    def __init__(self, config: ShardingConfig | None = None) -> None:
        self.config = config or ShardingConfig()
        self._models: list[tuple[Base, Callable[[], None]]] = []

    def split(self, base: Base, device: torch.device) -> Turn:
        """Move a loaded model to `device`, of its layers a part only, and return its turn.

        Args:
            base: Loaded whole in main memory, without adapters; none of its weights will learn.
            device: Of this process.

        Raises:
            ConfigError: If transformers does not say what the model's layers are, or DeepSpeed is not installed.
        """
        decoder = base.model.get_decoder()
        names = base.model._no_split_modules or ()
        layers = [module for module in decoder.modules() if type(module).__name__ in names]
        if not layers:
            raise ConfigError(
                f"model {base.name!r} cannot be split over processes",
                expected="a transformers model that names its layers in _no_split_modules",
                fix="train without FSDP and DeepSpeed",
            )
        base.model.requires_grad_(False)
        # Gradients then reach the first layer's input wherever they are computed, so that passes are alike.
        base.model.enable_input_require_grads()
        kept = set(base.model.parameters()) - {p for layer in layers for p in layer.parameters()}
        if self.config.engine == "fsdp":
            begin = _by_fsdp(decoder, layers, kept, self.config, device)
        else:
            begin = _by_deepspeed(layers, self.config)
        for whole in kept:
            whole.data = whole.data.to(device)
        for module in base.model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(device))
        self._models.append((base, begin))
        number = len(self._models) - 1
        return lambda: self._wait_for(number)

    def drain(self, *, backward: bool = False) -> None:
        """Take part, with padding, until no process has anything more to compute.

        Args:
            backward: Each pass is followed by its backward pass.
        """
        while (number := self._next(None)) is not None:
            self._pad(number, backward=backward)

    def _wait_for(self, number: int) -> None:
        while (next_one := self._next(number)) != number:
            assert next_one is not None
            self._pad(next_one, backward=False)
        self._models[number][1]()

    def _next(self, wanted: int | None) -> int | None:
        """Tell the others what this process would compute with, and return what all compute with now."""
        if not self._models:
            return None
        wishes = torch.zeros(len(self._models), dtype=torch.int32, device=self._models[0][0].model.device)
        if wanted is not None:
            wishes[wanted] = 1
        dist.all_reduce(wishes)
        return next((i for i, count in enumerate(wishes.tolist()) if count), None)

    def _pad(self, number: int, *, backward: bool) -> None:
        base, begin = self._models[number]
        begin()
        ids = torch.full((1, 1), base.pad_id, device=base.model.device)
        embedded = base.model.get_input_embeddings()(ids).detach()
        if not backward:
            with torch.no_grad():
                base.model.get_decoder()(inputs_embeds=embedded, use_cache=False)
            return
        embedded.requires_grad_()
        with torch.enable_grad(), recomputing_layers(base.model):
            states = base.model.get_decoder()(inputs_embeds=embedded, use_cache=False)[0]
        # Asked for one gradient only, so that nothing is left in those of the weights.
        torch.autograd.grad(states, embedded, torch.zeros_like(states))


def _by_fsdp(
    decoder: nn.Module,
    layers: Sequence[nn.Module],
    kept: set[nn.Parameter],
    config: ShardingConfig,
    device: torch.device,
) -> Callable[[], None]:
    options: dict[str, Any] = {
        "mesh": init_device_mesh(device.type, (dist.get_world_size(),)),
        "reshard_after_forward": config.reshard_after_forward,
        "offload_policy": CPUOffloadPolicy() if config.offload else OffloadPolicy(),
    }
    for layer in layers:
        fully_shard(layer, **options)
    fully_shard(decoder, ignored_params=kept, **options)
    return no_turns


def _by_deepspeed(layers: Sequence[nn.Module], config: ShardingConfig) -> Callable[[], None]:
    deepspeed = import_extra("deepspeed", "deepspeed", "splitting a model by accelerate's DeepSpeed settings")
    zero: dict[str, Any] = {"stage": 3, "stage3_param_persistence_threshold": 0}
    if config.offload:
        zero["offload_param"] = {"device": "cpu"}
    # Without an optimiser the engine only splits and gathers; the learners' optimisers are this trainer's own.
    engine, *_ = deepspeed.initialize(
        model=nn.ModuleList(layers), config={"zero_optimization": zero, "train_micro_batch_size_per_gpu": 1}
    )
    # It learns in which order layers are used from pass to pass, and must be told where one begins.
    begin: Callable[[], None] = engine.optimizer.get_param_coordinator().reset_step
    return begin
