"""What `mappa play` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mappa_envs.tasks.math.base import MathTask
from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.run import load_team, record_text
from mappa_rl.policy.base import Policy, Sampling
from mappa_rl.policy.scripted import math_oracle
from mappa_rl.rollout.collector import Collector, EpisodeSpec, derive_seed
from mappa_rl.training.build import make_env


def play_episodes(
    config: TrainConfig, *, policy: str, run: Path | None, episodes: int, first_task: int, seed: int
) -> Iterator[str]:
    """Play held-out tasks one by one and yield each transcript as text.

    Args:
        config: Environment, model and sampling.
        policy: `scripted` (an oracle that knows the answers) or `model`.
        run: Run folder whose adapters the model gets.
        episodes: How many.
        first_task: Index of the first task.
        seed: Seed of the sampling.

    Raises:
        ConfigError: If the policy is unknown or the oracle cannot play the tasks.
    """
    env = make_env(config, "eval")
    specs = [EpisodeSpec(task_index=first_task + i, group=i) for i in range(episodes)]
    if policy == "scripted":
        tasks = [env.tasks.task(spec.task_index) for spec in specs]
        player: Policy = math_oracle([task for task in tasks if isinstance(task, MathTask)])
    elif policy == "model":
        player = load_team(config, env, run)
    else:
        raise ConfigError("unknown policy", expected="'scripted' or 'model'", got=repr(policy))
    collector = Collector(lambda: make_env(config, "eval"), player, concurrency=1)
    sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
    for spec in specs:
        (episode,) = collector.collect([spec], sampling, seed=derive_seed(seed, spec.task_index))
        yield record_text(env, EpisodeRecord.of(episode))
    collector.close()
