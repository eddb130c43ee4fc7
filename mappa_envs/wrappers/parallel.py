"""The parallel face: one acting agent, or one layer of agents that act side by side, per `step`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, ParamSpec

from gymnasium.spaces import Dict as DictSpace
from pettingzoo import ParallelEnv

from envs_registry.errors import did_you_mean
from mappa_envs import background
from mappa_envs.errors import ActionError, ConfigError, EpisodeError
from mappa_envs.spaces import AnyText
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Transcript

Observations = dict[str, dict[str, str]]
Infos = dict[str, dict[str, Any]]
P = ParamSpec("P")
StepResult = tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]


class TeamParallelEnv(ParallelEnv[str, dict[str, str], str]):
    """A `TeamEnv` as a PettingZoo `ParallelEnv` that stays turn-based.

    The agents of `layer` act in a `step`: one after the other where the topology says so, at once where it
    puts them side by side (their tools and verdicts then overlap). All agents stay alive, and get an
    observation, reward and info in every step, until the episode ends for all of them at once.

    Everything that `reset` and `step` return is a copy: what a caller keeps of one step is not changed by the
    next.

    Args:
        env: The environment to show; it must not be stepped by anybody else.

    Raises:
        ConfigError: If `env` is not a `TeamEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "mappa_team_parallel",
        "render_modes": ["ansi", "human"],
    }

    def __init__(self, env: TeamEnv) -> None:
        if not isinstance(env, TeamEnv):
            raise ConfigError("TeamParallelEnv shows a TeamEnv", expected="a TeamEnv", got=repr(env))
        self.aec_env = env
        self.render_mode = env.render_mode
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []
        self._started = False
        self.observation_spaces = env.observation_spaces
        self.action_spaces = env.action_spaces

    def observation_space(self, agent: str) -> DictSpace:
        """Return the agent's observation space: `Dict(role, prompt)` of text."""
        return self.aec_env.observation_space(agent)

    def action_space(self, agent: str) -> AnyText:
        """Return the agent's action space: any text."""
        return self.aec_env.action_space(agent)

    @property
    def layer(self) -> tuple[str, ...]:
        """The agents whose actions the next `step` takes; empty when no episode is running."""
        return self.aec_env.layer

    @property
    def transcript(self) -> Transcript:
        """The episode so far."""
        return self.aec_env.transcript

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Start an episode; see `TeamEnv.reset`.

        Args:
            seed: Draws the task.
            options: `{"task_index": i}` plays task `i`.

        Returns:
            Observations and infos of all agents. `infos[agent]["messages"]` holds the chat of an agent that
            acts next, and is empty for the others.

        Raises:
            ConfigError: If an option or the seed is malformed.
            TaskError: If the source has no task of that index.
        """
        self.aec_env.reset(seed=seed, options=options)
        self.agents = list(self.aec_env.agents)
        self._started = True
        return self._observations(), copy.deepcopy(self.aec_env.infos)

    def step(self, actions: Mapping[str, str | None]) -> StepResult:
        """Take the actions of the agents of `layer`.

        Args:
            actions: A string for every agent of `layer`. Entries of other living agents are ignored, as in
                PettingZoo's own turn-based conversion: random policies act for everybody.

        Returns:
            Observations, rewards, terminations, truncations, infos, each with every agent that was alive
            before the step; five empty dicts for `step({})` after the end. The reward is that of the action
            just taken, and 0 for agents that did not act.

        Raises:
            ActionError: If an action of `layer` is missing or malformed, or an agent does not exist.
            EpisodeError: If there is no running episode.
        """
        layer = self.layer
        if not layer:
            if not actions and self._started:
                return {}, {}, {}, {}, {}
            raise EpisodeError(
                "step() without a running episode", expected="a running episode", fix="call reset() first"
            )
        background.run(self.aec_env.layer_async(self._chosen(layer, actions)))
        env = self.aec_env
        result = (
            self._observations(),
            dict(env.rewards),
            dict(env.terminations),
            dict(env.truncations),
            copy.deepcopy(env.infos),
        )
        self.agents = [a for a in self.agents if not (env.terminations[a] or env.truncations[a])]
        return result

    def _chosen(self, layer: tuple[str, ...], actions: object) -> dict[str, str | None]:
        if not isinstance(actions, Mapping):
            raise ActionError(
                "step takes the actions of the layer at once",
                expected=f"a dict with a string for {' and '.join(map(repr, layer))}",
                got=type(actions).__name__,
            )
        for agent in actions:
            if agent not in self.agents:
                raise ActionError(
                    f"there is no agent {agent!r}",
                    expected=", ".join(self.agents),
                    got=repr(agent),
                    fix=did_you_mean(agent, self.agents),
                )
        missing = [agent for agent in layer if agent not in actions]
        if missing:
            raise ActionError(
                f"no action for {' and '.join(map(repr, missing))}",
                expected=f"a string for each of {', '.join(layer)}",
                got=f"actions of {', '.join(actions) or 'nobody'}",
                fix="act for every agent of env.layer",
            )
        return {agent: actions[agent] for agent in layer}

    def _observations(self) -> Observations:
        return {agent: self.aec_env.observe(agent) for agent in self.agents}

    def render(self) -> str | None:
        """Return the transcript as text (`ansi`), or print what is new of it (`human`)."""
        return self.aec_env.render()

    def close(self) -> None:
        """Kill the episode's kernels and delete its workspace; the environment can be reset again."""
        self.aec_env.close()

    def __str__(self) -> str:
        return f"TeamParallelEnv({self.aec_env})"


def parallel_face(make_team: Callable[P, TeamEnv]) -> Callable[P, TeamParallelEnv]:
    """Return the parallel entry point that goes with an AEC one; it takes the same keywords.

    Args:
        make_team: Class or function that makes a `TeamEnv`.
    """

    # Only `__wrapped__` is set: it is how `envs_registry.make` learns which keywords are right.
    @wraps(make_team, assigned=(), updated=())
    def make_parallel(*args: P.args, **kwargs: P.kwargs) -> TeamParallelEnv:
        return TeamParallelEnv(make_team(*args, **kwargs))

    return make_parallel
