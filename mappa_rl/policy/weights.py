"""Kinds of weights over one base model: what each agent plays with, what learns, and how it is kept."""

from __future__ import annotations

import contextlib
import copy
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import torch
from peft import LoraConfig, PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from torch import nn
from transformers import AutoModelForCausalLM

from mappa_rl.errors import CheckpointError
from mappa_rl.policy.loading import Base


class Weights(Protocol):
    """Weights of some learners over one base model."""

    learners: Mapping[str, tuple[str, ...]]
    """Each learner's name and its agents."""

    def playing(self, learner: str | None) -> AbstractContextManager[Any]:
        """Give the model with a learner's weights; None is the base as it is."""

    def reference(self, learner: str | None) -> AbstractContextManager[Any]:
        """Give the model with the weights that the learner started from."""

    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return what learns."""

    def save(self, learner: str, folder: Path) -> None:
        """Write a learner's weights into a folder."""

    def load(self, learner: str, folder: Path) -> None:
        """Read what `save` wrote.

        Raises:
            CheckpointError: If files are missing or do not fit.
        """


def learners_of(
    agents: Sequence[str], frozen: Sequence[str], *, shared: bool = False, number: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return the learners of the agents of one base model: one for each that is not frozen, or one for all of them.

    Args:
        agents: All that play with the model.
        frozen: Those of them that never learn.
        shared: All that learn share their weights, under the name `team`, `team1`, ...
        number: Tells the shared weights of different base models apart.
    """
    learning = tuple(agent for agent in agents if agent not in frozen)
    if shared and learning:
        return {f"team{number or ''}": learning}
    return {agent: (agent,) for agent in learning}


class Adapters:
    """One base model, one LoRA adapter for each learner.

    The reference of a fresh adapter is the base with the adapters off, which costs no memory. An adapter that
    starts from a trained one has a frozen copy of that as its reference: against the base its KL would not start
    at 0.

    Args:
        base: The loaded model.
        learners: At least one learner, with its agents.
        rank: LoRA rank.
        alpha: LoRA alpha; the update is scaled by `alpha / rank`.
        targets: `all-linear` or the names of the modules to adapt.
        seed: Seeds the adapters' initialisation.
        start_from: Folder with an adapter `<learner>/` each to start from.

    Raises:
        CheckpointError: If an adapter in `start_from` is missing or does not fit.
    """

    def __init__(
        self,
        base: Base,
        learners: Mapping[str, tuple[str, ...]],
        *,
        rank: int = 8,
        alpha: float = 16,
        targets: str | Sequence[str] = "all-linear",
        seed: int = 0,
        start_from: Path | None = None,
    ) -> None:
        self.base = base
        self.learners: Mapping[str, tuple[str, ...]] = dict(learners)
        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=targets if isinstance(targets, str) else list(targets),
            task_type="CAUSAL_LM",
        )
        first, *others = self.learners
        with torch.random.fork_rng(), warnings.catch_warnings():
            # PEFT asks transformers 5 by the old name of `is_activation_checkpointing`.
            warnings.simplefilter("ignore", FutureWarning)
            torch.manual_seed(seed)
            self.model: PeftModel = get_peft_model(base.model, config, adapter_name=first)
            for learner in others:
                self.model.add_adapter(learner, config)
            self._references: dict[str, str] = {}
            for learner in self.learners if start_from is not None else ():
                self._references[learner] = f"{learner}_reference"
                self.model.add_adapter(self._references[learner], config)
        for learner, reference in self._references.items():
            for adapter in (learner, reference):
                self._load(adapter, Path(start_from or "") / learner)
        self.model.eval()

    @contextlib.contextmanager
    def playing(self, learner: str | None) -> Iterator[Any]:
        """Give the model with a learner's adapter active; None: all adapters off."""
        if learner is None:
            with self.model.disable_adapter():
                yield self.base.model
        else:
            self.model.set_adapter(learner)
            yield self.base.model

    @contextlib.contextmanager
    def reference(self, learner: str | None) -> Iterator[Any]:
        """Give the model with the adapter that the learner started from, or with all adapters off."""
        with self.playing(None if learner is None else self._references.get(learner)) as model:
            yield model

    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return the adapter's parameters."""
        return [p for name, p in self.model.named_parameters() if f".{learner}." in name]

    def save(self, learner: str, folder: Path) -> None:
        """Write the adapter in PEFT's own format."""
        # PEFT makes a sub-folder of the adapter's name.
        self.model.save_pretrained(str(folder.parent), selected_adapters=[learner])
        # It writes the target modules in the order of a set, which differs from process to process.
        path = folder / "adapter_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(config["target_modules"], list):
            config["target_modules"].sort()
        path.write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")

    def load(self, learner: str, folder: Path) -> None:
        """Read an adapter in PEFT's own format.

        Raises:
            CheckpointError: If it is missing or does not fit.
        """
        self._load(learner, folder)

    def _load(self, adapter: str, folder: Path) -> None:
        if not (folder / "adapter_model.safetensors").is_file():
            raise CheckpointError(
                f"no adapter in {folder}",
                expected=f"{folder}/adapter_model.safetensors",
                fix="give the folder that holds one sub-folder per agent",
            )
        weights = load_peft_weights(str(folder), device=str(self.base.model.device))
        try:
            result = set_peft_model_state_dict(self.model, weights, adapter_name=adapter)
        except RuntimeError as error:
            raise _misfit(folder, str(error).split("\n")[0]) from error
        missing = [key for key in result.missing_keys if f".{adapter}." in key]
        if result.unexpected_keys or missing:
            raise _misfit(folder, f"unknown weights {result.unexpected_keys[:3]}, missing weights {missing[:3]}")


class FullCopies:
    """A whole model of its own for each learner; the base stays as it is and is the reference.

    Args:
        base: The loaded model.
        learners: Each learner with its agents; none where nothing is to learn.
    """

    def __init__(self, base: Base, learners: Mapping[str, tuple[str, ...]]) -> None:
        self.base = base
        self.learners: Mapping[str, tuple[str, ...]] = dict(learners)
        base.model.requires_grad_(False)
        self.models = {learner: copy.deepcopy(base.model).requires_grad_(True) for learner in self.learners}

    @contextlib.contextmanager
    def playing(self, learner: str | None) -> Iterator[Any]:
        """Give the learner's model; None: the base."""
        yield self.base.model if learner is None else self.models[learner]

    @contextlib.contextmanager
    def reference(self, learner: str | None) -> Iterator[Any]:
        """Give the base."""
        yield self.base.model

    def parameters(self, learner: str) -> list[nn.Parameter]:
        """Return all parameters of the learner's model."""
        return list(self.models[learner].parameters())

    def save(self, learner: str, folder: Path) -> None:
        """Write model and tokenizer in transformers' own format."""
        self.models[learner].save_pretrained(str(folder))
        self.base.tokenizer.save_pretrained(str(folder))

    def load(self, learner: str, folder: Path) -> None:
        """Read a model in transformers' own format.

        Raises:
            CheckpointError: If it is missing or does not fit.
        """
        model = self.models[learner]
        if not (folder / "config.json").is_file():
            raise CheckpointError(f"no model in {folder}", expected=f"{folder}/config.json and weights")
        try:
            loaded = AutoModelForCausalLM.from_pretrained(str(folder), dtype=model.dtype)
            model.load_state_dict(loaded.state_dict())
        except (OSError, ValueError, RuntimeError) as error:
            raise _misfit(folder, str(error).split("\n")[0]) from error


def _misfit(folder: Path, got: str) -> CheckpointError:
    return CheckpointError(
        f"the weights in {folder} do not fit this model",
        got=got,
        fix="use the base model, rank and targets that they were trained with",
    )
