"""Training in several processes: each plays its share of the episodes, and their gradients are added up.

Every process holds the whole model, or with FSDP a part of the base and all adapters. What all of them must agree on
(which rows make an optimiser step, whether to stop) is computed by each from what they exchanged, so that none waits
for another that has gone elsewhere.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy

from mappa_rl.algorithms.reduction import Reduce, one_process, over_processes
from mappa_rl.errors import ConfigError, MappaError
from mappa_rl.policy.sharding import Sharding, ShardingConfig

_T = TypeVar("_T")

# One process may play long after the others have finished: a slow judge is no reason to end a run. A process that
# dies ends the others through the launcher.
_PATIENCE = timedelta(hours=24)


class Processes:
    """The processes of a run. This one is the only process.

    Methods are collective: every process calls them, in the same order.
    """

    def __init__(
        self, rank: int = 0, count: int = 1, reduce: Reduce = one_process, sharding: Sharding | None = None
    ) -> None:
        self.rank, self.count = rank, count
        self.reduce = reduce
        """Adds up sums by key."""
        self.sharding = sharding
        """Splits base models over the processes; None: each holds them whole."""

    @property
    def first(self) -> bool:
        """Whether this process writes the files and speaks to the user."""
        return self.rank == 0

    def gather(self, value: _T) -> list[_T]:
        """Return the value of each process, in order of rank."""
        return [value]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add up the gradients of all processes, in place; a missing one counts as 0."""

    def drain(self, *, backward: bool = False) -> None:
        """Wait for the processes that still compute with split models, and take part in it; see `Sharding`."""
        if self.sharding is not None:
            self.sharding.drain(backward=backward)

    def each(self, act: Callable[[], _T]) -> _T:
        """Do something that is not collective, and return this process's result.

        Raises:
            MappaError: In every process, if it was raised in one; nobody is left waiting.
        """
        result: _T | None = None
        failure: MappaError | None = None
        try:
            result = act()
        except MappaError as error:
            if self.count == 1:
                raise
            failure = error
        self.drain()
        for one in self.gather(failure):
            if one is not None:
                raise one
        return cast("_T", result)

    def on_first(self, act: Callable[[], _T]) -> _T:
        """Do something in the first process alone and return its result in all of them.

        Raises:
            MappaError: In every process, if it was raised there.
        """
        return cast("_T", self.gather(self.each(lambda: act() if self.first else None))[0])


class Group(Processes):
    """The processes of an initialised `torch.distributed` group."""

    def __init__(self, sharding: Sharding | None = None) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size(), over_processes(), sharding)

    def gather(self, value: _T) -> list[_T]:
        """Return the value of each process, in order of rank."""
        values: list[_T | None] = [None] * self.count
        dist.all_gather_object(values, value)
        return cast("list[_T]", values)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add up the gradients of all processes, in place; a missing one counts as 0."""
        self.drain(backward=True)
        if not parameters:
            return
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        for kind in dict.fromkeys(g.dtype for g in grads):
            same = [i for i, g in enumerate(grads) if g.dtype == kind]
            flat = torch.cat([grads[i].flatten() for i in same])
            dist.all_reduce(flat)
            for i, part in zip(same, flat.split([grads[i].numel() for i in same]), strict=True):
                parameters[i].grad = part.view_as(parameters[i])


def launched_processes(device: str) -> Processes:
    """Return the processes that `accelerate launch` or `torchrun` started, joined; a plain start is the only one.

    Args:
        device: `policy.device`; with several processes on CUDA, `auto` gives each a device of its own.

    Raises:
        ConfigError: If the launcher was told to split the model in a way that this trainer does not.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Processes()
    if _told("MEGATRON_LM"):
        raise ConfigError(
            "accelerate is configured for Megatron, which has models of its own",
            expected="multi-CPU or multi-GPU, FSDP or DeepSpeed",
            got="ACCELERATE_USE_MEGATRON_LM=true",
            fix="run `accelerate config` again",
        )
    sharding = None
    if _told("FSDP"):
        sharding = Sharding(_of_fsdp())
    elif _told("DEEPSPEED"):
        sharding = Sharding(_of_deepspeed())
        # Read here; accelerate would start DeepSpeed's own process group, which is the same one with another name.
        os.environ["ACCELERATE_USE_DEEPSPEED"] = "false"
    from accelerate import PartialState

    PartialState(cpu=device == "cpu", timeout=_PATIENCE)
    if dist.get_backend() == "gloo":
        # Its threads, if they still run when the process ends, abort it now and then.
        atexit.register(_leave)
    return Group(sharding)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _told(name: str) -> bool:
    return os.environ.get(f"ACCELERATE_USE_{name}", "false").lower() == "true"


def _of_deepspeed() -> ShardingConfig:
    """Read accelerate's DeepSpeed settings; only how weights are split concerns a base that does not learn."""
    from accelerate.utils import DeepSpeedPlugin

    plugin = DeepSpeedPlugin()
    if plugin.zero_stage != 3:
        raise ConfigError(
            "only stage 3 of ZeRO splits a base model; the others split what learns, which is small here",
            expected="zero_stage: 3",
            got=str(plugin.zero_stage),
            fix="set deepspeed_config.zero_stage to 3 in accelerate's config, or launch with --zero_stage 3",
        )
    return ShardingConfig("deepspeed", offload=plugin.offload_param_device == "cpu")


def _of_fsdp() -> ShardingConfig:
    """Read accelerate's FSDP settings; what they say of layers, precision and checkpoints is this trainer's own."""
    from accelerate.utils import FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin()
    if plugin.fsdp_version != 2:
        raise ConfigError(
            "only version 2 of FSDP is supported",
            expected="fsdp_version: 2",
            got=str(plugin.fsdp_version),
            fix="set fsdp_config.fsdp_version to 2 in accelerate's config, or launch with --fsdp_version 2",
        )
    if plugin.activation_checkpointing:
        raise ConfigError(
            "activations are recomputed by this trainer's own setting",
            got="fsdp_activation_checkpointing: true",
            fix="set policy.gradient_checkpointing=true, and false in accelerate's config",
        )
    return ShardingConfig(
        reshard_after_forward=bool(plugin.reshard_after_forward),
        offload=isinstance(plugin.cpu_offload, CPUOffloadPolicy),
    )
