"""Base models that are split over processes (PyTorch's FSDP2), for models too large to be held by each.

Every process holds a part of each decoder layer of the base and gathers a layer while it computes with it. So all
processes must compute the same layers equally often, whatever each of them plays and learns: `Sharding` keeps them
in step, and lets those that have nothing to compute take part with a token of padding. Adapters, value heads,
embeddings and the output layer are small and stay whole in each process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

from mappa_rl.errors import ConfigError
from mappa_rl.policy.loading import Base
from mappa_rl.policy.logprobs import recomputing_layers

Turn = Callable[[], None]
"""Called before every pass through a model: waits until all processes compute with it, be it padding."""


def no_turns() -> None:
    """Do nothing: a whole model is computed with at any time."""


@dataclass(frozen=True, slots=True)
class ShardingConfig:
    """What accelerate's FSDP settings say, as far as it concerns a base that does not learn."""

    reshard_after_forward: bool = True
    """Drop a layer's other parts after its forward pass, and gather them again for the backward pass."""
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
        self._models: list[Base] = []
        self._meshes: dict[str, DeviceMesh] = {}

    def split(self, base: Base, own: Iterable[nn.Parameter], device: torch.device) -> Turn:
        """Move a loaded model to `device`, of its layers a part only, and return its turn.

        Args:
            base: Loaded whole in main memory, with adapters in it or not.
            own: The parameters that stay whole: those of adapters.
            device: Of this process.

        Raises:
            ConfigError: If transformers does not say what the model's layers are.
        """
        decoder, mesh = base.model.get_decoder(), self._mesh(device.type)
        layers = [layer for layer in decoder.modules() if type(layer).__name__ in (base.model._no_split_modules or ())]
        if not layers:
            raise ConfigError(
                f"model {base.name!r} cannot be split over processes",
                expected="a transformers model that names its layers in _no_split_modules",
                fix="train without FSDP",
            )
        whole = {id(p) for p in own}
        options: dict[str, Any] = {
            "mesh": mesh,
            "reshard_after_forward": self.config.reshard_after_forward,
            "offload_policy": CPUOffloadPolicy() if self.config.offload else OffloadPolicy(),
        }
        kept = set(decoder.parameters())
        for layer in layers:
            kept -= set(layer.parameters())
            ignored = {p for p in layer.parameters() if id(p) in whole}
            fully_shard(layer, ignored_params=ignored, **options)
        fully_shard(decoder, ignored_params=kept | {p for p in decoder.parameters() if id(p) in whole}, **options)
        for part in (p for p in base.model.parameters() if id(p) in whole or not _is_part(p)):
            part.data = part.data.to(device)
        for module in base.model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(device))
        self._models.append(base)
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

    def _next(self, wanted: int | None) -> int | None:
        """Tell the others what this process would compute with, and return what all compute with now."""
        if not self._models:
            return None
        wishes = torch.zeros(len(self._models), dtype=torch.int32, device=self._models[0].model.device)
        if wanted is not None:
            wishes[wanted] = 1
        dist.all_reduce(wishes)
        return next((i for i, count in enumerate(wishes.tolist()) if count), None)

    def _pad(self, number: int, *, backward: bool) -> None:
        base = self._models[number]
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

    def _mesh(self, kind: str) -> DeviceMesh:
        if kind not in self._meshes:
            self._meshes[kind] = init_device_mesh(kind, (dist.get_world_size(),))
        return self._meshes[kind]


def _is_part(parameter: nn.Parameter) -> bool:
    return hasattr(parameter, "to_local")
