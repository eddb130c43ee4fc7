"""What `mappa play` and `mappa eval` do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from mappa_envs.render import render_transcript
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.team_env import TeamEnv
from mappa_rl.config import TrainConfig
from mappa_rl.errors import CheckpointError, ConfigError
from mappa_rl.evaluate import Evaluation, eval_specs, evaluate
from mappa_rl.policy.base import Policy, Sampling
from mappa_rl.policy.scripted import math_oracle
from mappa_rl.rollout.collector import Collector, Episode, EpisodeSpec, derive_seed
from mappa_rl.trainer import make_env, make_team


def load_team(config: TrainConfig, env: TeamEnv, run: Path | None) -> Policy:
    """Return the config's team, with the adapters of a run folder where one is given.

    Raises:
        CheckpointError: If the run folder holds no adapters.
    """
    team = make_team(config, env.possible_agents)
    if run is not None:
        if not (run / "adapters").is_dir():
            raise CheckpointError(f"no adapters in {run}", expected="a finished run folder", fix="check --run")
        team.load(run / "adapters")
    return team


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
        yield episode_text(env, episode)
    collector.close()


def episode_text(env: TeamEnv, episode: Episode) -> str:
    """Return a played episode as text."""
    if episode.transcript is None:
        return f"episode lost: {episode.failure}"
    return render_transcript(episode.transcript, env.tasks.task(episode.spec.task_index).prompt)


def evaluate_team(
    config: TrainConfig, *, run: Path | None, transcripts: int, out: Path | None
) -> tuple[Evaluation, list[str]]:
    """Measure the config's team on held-out tasks.

    Args:
        config: Environment, model, tasks and samples.
        run: Run folder whose adapters the model gets.
        transcripts: How many transcripts to return.
        out: Where to write the result as JSON.

    Returns:
        The evaluation, and the first transcripts as text.
    """
    env = make_env(config, "eval")
    team = load_team(config, env, run)
    collector = Collector(lambda: make_env(config, "eval"), team, concurrency=config.rollout.concurrency)
    sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
    specs = eval_specs(config.eval.tasks, config.eval.samples, env.tasks.size)
    result, episodes = evaluate(collector, specs, sampling, seed=config.seed)
    collector.close()
    if out is not None:
        out.write_text(json.dumps(result.to_json(), indent=2) + "\n", encoding="utf-8")
    return result, [episode_text(env, episode) for episode in episodes[:transcripts]]
