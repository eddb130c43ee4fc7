"""Settings of a training run: models, and loading them from YAML plus overrides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envs_registry.errors import ConfigError
from mappa_rl.config import yaml_text
from mappa_rl.config.errors import explain
from mappa_rl.config.overrides import apply_overrides, flatten, format_override, parse_override


class Config(BaseModel):
    """Base of all settings: frozen, unknown keys are errors, fields are described by their docstrings."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",  # free-form kwargs may hold them; the default writes null
        validate_default=True,
        protected_namespaces=(),
    )


class EnvConfig(Config):
    """The environment that the team is trained in."""

    id: str = "Mappa/MathChat-v0"
    """Registered id, or `module:Namespace/Name-vN`."""
    kwargs: dict[str, Any] = {}
    """Keyword arguments of `envs_registry.make`."""


class RolePolicyConfig(Config):
    """What one role plays with in place of the team's base model."""

    model: str | None = None
    """Its base model, as `policy.model`; null: the team's."""
    gguf_file: str | None = None
    """Name of the GGUF file in that folder or hub repository."""
    script: str | None = None
    """`module:function` from a `PolicyRequest` to a text; the role then has no model and never learns."""


class PolicyConfig(Config):
    """The models that play, and what of them learns."""

    kind: Literal["lora", "shared_lora", "full"] = "lora"
    """`lora`: an adapter per agent. `shared_lora`: one adapter for all agents. `full`: a whole model per agent."""
    frozen: tuple[str, ...] = ()
    """Roles or agents that play with the base as it is and never learn."""
    per_role: dict[str, RolePolicyConfig] = {}
    """Roles or agents with a base model or script of their own."""
    start_from: str | None = None
    """Folder with trained adapters to start from, e.g. `adapters` of a run; they are then the KL's reference."""
    model: str = "tiny"
    """`tiny` (the embedded model), a local folder, a `.gguf` file or a hub id."""
    gguf_file: str | None = None
    """Name of the GGUF file in that folder or hub repository."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Type of the base weights; auto: bfloat16 on CUDA, float32 elsewhere."""
    device: str = "auto"
    """A torch device; auto: CUDA, then MPS, then the CPU."""
    autocast: bool = False
    """Compute in bfloat16 where torch's autocast does; the weights keep their type."""
    attention: str | None = None
    """transformers' `attn_implementation`; null: its choice."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third slower."""
    lora_rank: int = Field(default=8, ge=1)
    """Rank of each adapter."""
    lora_alpha: float = Field(default=16, gt=0)
    """Scale of the adapter is alpha / rank."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Modules that get an adapter: `all-linear`, or names."""
    think: Literal["drop", "keep"] = "drop"
    """Whether tools, judges and other agents see what is in `<think>` blocks; it is trained on in either case."""
    template_kwargs: dict[str, Any] = {}
    """Variables of the chat template, e.g. `enable_thinking`."""
    max_prompt_tokens: int = Field(default=4096, ge=1)
    """Longer prompts are cut in the middle."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest action, in tokens; longer ones are cut off and not trained on."""


class RolloutConfig(Config):
    """How experience is gathered in each step."""

    tasks_per_step: int = Field(default=32, ge=1)
    """Tasks per step."""
    samples_per_task: int = Field(default=2, ge=1)
    """Episodes on each task; group baselines need at least 2."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature; 0 would leave nothing to learn from. Training samples from the whole distribution."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes that are played at the same time."""
    max_failed_share: float = Field(default=0.2, ge=0, le=1)
    """The run stops if a larger share of a step's verdicts failed."""


class AlgorithmConfig(Config):
    """The learning algorithm."""

    name: str = "reinforce_pp"
    """A built-in name, an entry point of `mappa.algorithms`, or `module:Class`."""
    kwargs: dict[str, Any] = {}
    """Its settings, e.g. `kl_coef`."""


class OptimConfig(Config):
    """AdamW and its schedule, one optimiser per agent."""

    name: Literal["adamw", "adamw_8bit"] = "adamw"
    """`adamw_8bit` keeps the running means in 8 bits (bitsandbytes, extra `8bit`): a quarter of their memory."""
    lr: float | None = Field(default=None, gt=0)
    """Peak learning rate; null: 2e-3 for the embedded model, which is tiny, and 2e-5 for others."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay of AdamW's running mean and mean square."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest gradient norm per agent."""
    warmup_share: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    final_lr_share: float = Field(default=0.1, ge=0, le=1)
    """Learning rate at the end of the cosine, as a share of the peak."""
    minibatches: int = Field(default=4, ge=1)
    """Optimiser steps per agent and training step."""
    micro_tokens: int = Field(default=16384, ge=1)
    """Padded tokens per forward pass: memory only, the gradient does not depend on it."""


class EvalConfig(Config):
    """Evaluation on held-out tasks."""

    tasks: int = Field(default=100, ge=0)
    """Number of tasks; 0: no evaluation."""
    samples: int = Field(default=1, ge=1)
    """Episodes per task."""
    temperature: float = Field(default=0.6, ge=0)
    """Sampling temperature; 0 is greedy."""
    every: int = Field(default=0, ge=0)
    """Evaluate after every so many steps; 0: only before and after training."""
    patience: int = Field(default=0, ge=0)
    """Stop when so many evaluations in a row bring no better success; 0: never."""
    contamination: Literal["error", "warn", "off"] = "error"
    """What to do when held-out maths tasks are among the training tasks: refuse to train, warn, or not look."""


class TrainConfig(Config):
    """A training run."""

    seed: int = Field(default=0, ge=0)
    """Seed of tasks, sampling and adapters."""
    run_dir: Path | None = None
    """Folder of the run; null: a new one under `runs/`."""
    steps: int = Field(default=12, ge=1)
    """Training steps: gather experience, then update every agent."""
    reward: Literal["process", "outcome", "mixed"] = "process"
    """`process`: each action's verdict. `outcome`: the episode's outcome for all its actions; the judge is not asked.
    `mixed`: a weighted mean of the two."""
    outcome_weight: float = Field(default=0.5, ge=0, le=1)
    """Weight of the outcome in the `mixed` reward; the rest is the verdict's."""
    keep_transcripts: int = Field(default=8, ge=0)
    """Training episodes per step whose transcripts are written; evaluations are written whole."""
    save_every: int = Field(default=0, ge=0)
    """Save a checkpoint after every so many steps; 0: only at the end, and at the best evaluation."""
    keep_last: int = Field(default=2, ge=1)
    """How many of the newest checkpoints are kept, besides the one of the best evaluation."""
    env: EnvConfig = EnvConfig()
    """The environment."""
    policy: PolicyConfig = PolicyConfig()
    """The base model and the adapters."""
    rollout: RolloutConfig = RolloutConfig()
    """How experience is gathered."""
    algorithm: AlgorithmConfig = AlgorithmConfig()
    """The learning algorithm."""
    optim: OptimConfig = OptimConfig()
    """The optimiser."""
    eval: EvalConfig = EvalConfig()
    """Evaluation."""

    @property
    def learning_rate(self) -> float:
        """The peak learning rate: `optim.lr`, or the default for the model."""
        if self.optim.lr is not None:
            return self.optim.lr
        return 2e-3 if self.policy.model == "tiny" else 2e-5


_Model = TypeVar("_Model", bound=BaseModel)


def load_config(model_cls: type[_Model], path: Path | str | None = None, overrides: Sequence[str] = ()) -> _Model:
    """Return settings from a YAML file and overrides; what neither sets has its default.

    Types are strict: `seed=true` and `seed="3"` are errors, an integer is accepted for a float.

    Args:
        model_cls: The settings model.
        path: A YAML file with a mapping, or None.
        overrides: `dotted.key=value`, values in YAML; they win over the file, later ones over earlier ones.

    Raises:
        ConfigError: If the file cannot be read, or a key or a value is wrong.
    """
    data = {} if path is None else _read(Path(path))
    data = apply_overrides(data, [parse_override(text) for text in overrides])
    source = "the settings" if path is None else str(path)
    return validate(model_cls, data, what=f"{source} with overrides" if path and overrides else source)


def validate(model_cls: type[_Model], data: Mapping[str, Any], *, what: str = "the settings") -> _Model:
    """Return the model of plain data (JSON types), strictly typed.

    Raises:
        ConfigError: If a key or a value is wrong; it names the dotted key and the nearest valid one.
    """
    try:
        # Strict JSON mode knows that a list may be a tuple and a string a path, and that true is no number.
        return model_cls.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise explain(error, model_cls, data, what=what) from None


def dump_config(config: BaseModel) -> str:
    """Return settings as YAML that `load_config` reads back to an equal object."""
    return yaml_text.block(config.model_dump(mode="json"))


def to_overrides(config: BaseModel) -> list[str]:
    """Return settings as overrides that `load_config` reads back to an equal object."""
    return [format_override(path, value) for path, value in flatten(config.model_dump(mode="json"))]


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml_text.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"the config file {str(path)!r} cannot be read",
            expected="a YAML file in UTF-8",
            got=str(reason),
            fix="check the path" if isinstance(error, OSError) else "save the file as UTF-8",
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(
            f"the config file {str(path)!r} is not valid YAML",
            expected="a mapping of settings, each key once",
            got=" ".join(str(error).split()),
            fix="correct the line that is named",
        ) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"the config file {str(path)!r} holds no mapping",
            expected="key: value lines",
            got=type(data).__name__,
            fix="start with e.g. 'seed: 0'",
        )
    return data
