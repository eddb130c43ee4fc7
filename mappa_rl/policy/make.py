"""From settings to a team."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from envs_registry.entry_points import load_entry_point
from envs_registry.errors import ConfigError, did_you_mean
from mappa_rl.config import PolicyConfig, RolePolicyConfig, TrainConfig
from mappa_rl.policy.base import Policy
from mappa_rl.policy.chat import ChatFormat
from mappa_rl.policy.loading import Base, load_base, pick_device
from mappa_rl.policy.mixed_team import MixedTeam
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.policy.scripted import ScriptedPolicy
from mappa_rl.policy.sharding import Sharding, no_turns
from mappa_rl.policy.team import Team
from mappa_rl.policy.weights import Adapters, FullCopies, Weights, learners_of


def make_team(
    config: TrainConfig, agents: Sequence[str], *, value_heads: bool = False, sharding: Sharding | None = None
) -> Team:
    """Load the base models of a config and give every agent what it plays with.

    Args:
        config: The run.
        agents: PettingZoo agent ids of the environment.
        value_heads: Give each learner a value head.
        sharding: Splits the base models over the processes of the run; None leaves them whole.

    Raises:
        ConfigError: If a setting names a role that the environment does not have, or models that learn are to be
            split.
        PolicyError: If a model cannot be loaded.
        CheckpointError: If adapters to start from are missing or do not fit.
        EntryPointError: If a script cannot be imported.
    """
    policy = config.policy
    _check_names([*policy.frozen, *policy.per_role], agents)
    if policy.start_from is not None and policy.kind == "full":
        raise ConfigError(
            "policy.start_from holds adapters, and policy.kind=full has none",
            expected="policy.kind 'lora' or 'shared_lora'",
            fix="name the models in policy.model or policy.per_role.<role>.model",
        )
    if sharding is not None and policy.kind == "full":
        raise ConfigError(
            "policy.kind=full cannot be split over processes, only base models that do not learn",
            expected="policy.kind 'lora' or 'shared_lora'",
            fix="set policy.kind=lora, or train without FSDP and DeepSpeed",
        )
    players: dict[str, Policy] = {}
    by_model: dict[tuple[str, str | None], list[str]] = {}
    for agent in agents:
        role = _of_agent(policy, agent)
        if role.script is not None:
            players[agent] = ScriptedPolicy({agent: load_entry_point(role.script)})
        else:
            model = (policy.model, policy.gguf_file) if role.model is None else (role.model, role.gguf_file)
            by_model.setdefault(model, []).append(agent)
    for number, (model, mine) in enumerate(by_model.items()):
        team = _model_team(config, model, mine, number, value_heads=value_heads, sharding=sharding)
        players |= dict.fromkeys(mine, team)
    teams = set(players.values())
    only = next(iter(teams))
    return only if len(teams) == 1 and isinstance(only, Team) else MixedTeam({a: players[a] for a in agents})


def _model_team(
    config: TrainConfig,
    model: tuple[str, str | None],
    agents: Sequence[str],
    number: int,
    *,
    value_heads: bool,
    sharding: Sharding | None,
) -> ModelTeam:
    policy = config.policy
    base = load_base(
        model[0],
        gguf_file=model[1],
        dtype=policy.dtype,
        device=policy.device,
        attention=policy.attention,
        gradient_checkpointing=policy.gradient_checkpointing,
        move=sharding is None,
    )
    # Before there are adapters, which stay whole.
    turn = no_turns if sharding is None else sharding.split(base, pick_device(policy.device))
    return ModelTeam(
        base,
        agents,
        _weights(config, base, agents, number),
        chat=ChatFormat(policy.max_prompt_tokens, policy.think, policy.template_kwargs),
        batch_size=config.rollout.concurrency,
        value_heads=value_heads,
        autocast=policy.autocast,
        turn=turn,
    )


def _weights(config: TrainConfig, base: Base, agents: Sequence[str], number: int) -> Weights:
    policy = config.policy
    frozen = [agent for agent in agents if agent in policy.frozen or role_of(agent) in policy.frozen]
    learners = learners_of(agents, frozen, shared=policy.kind == "shared_lora", number=number)
    if policy.kind == "full" or not learners:
        return FullCopies(base, learners)
    return Adapters(
        base,
        learners,
        rank=policy.lora_rank,
        alpha=policy.lora_alpha,
        targets=policy.lora_targets,
        seed=config.seed,
        start_from=None if policy.start_from is None else Path(policy.start_from),
    )


def role_of(agent: str) -> str:
    """Return the role name of an agent id: `solver` of `solver_0`."""
    return agent.rsplit("_", 1)[0]


def _of_agent(policy: PolicyConfig, agent: str) -> RolePolicyConfig:
    return policy.per_role.get(agent) or policy.per_role.get(role_of(agent)) or RolePolicyConfig()


def _check_names(names: Iterable[str], agents: Sequence[str]) -> None:
    known = [*dict.fromkeys(role_of(agent) for agent in agents), *agents]
    for name in names:
        if name not in known:
            raise ConfigError(
                f"policy settings name {name!r}, which is no role of this environment",
                expected=f"one of {', '.join(known)}",
                got=repr(name),
                fix=did_you_mean(name, known, "use a role or agent of the environment's topology"),
            )
