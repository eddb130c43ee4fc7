"""The team as one Gymnasium agent: it plays whichever role acts next."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, ParamSpec

import gymnasium
from gymnasium.spaces import Dict as DictSpace

from mappa_envs.errors import ConfigError, EpisodeError
from mappa_envs.spaces import AnyText
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Transcript

P = ParamSpec("P")


class TeamAsGym(gymnasium.Env[dict[str, str], str]):
    """A `TeamEnv` as a `gymnasium.Env` for a policy that writes the text of every role in turn.

    The observation is that of the role that acts next; the reward is the one of the action just taken. Agents
    of one layer act one after the other and do not see each other's turns of it, as in the AEC face.

    `info` holds `agent` (who acts next, None at the end) and its `messages`; after a step also `acted` (who
    acted), its `verdict` and `tools`; at the end `outcome`, and `final_verdicts` (one per turn of the
    episode) from a judge that scores whole episodes.

    Args:
        env: The environment to show; it must not be stepped by anybody else.

    Raises:
        ConfigError: If `env` is not a `TeamEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        # Gymnasium's checker warns without one, though text has no frame rate.
        "render_fps": 1,
    }

    def __init__(self, env: TeamEnv) -> None:
        if not isinstance(env, TeamEnv):
            raise ConfigError("TeamAsGym shows a TeamEnv", expected="a TeamEnv", got=repr(env))
        self.aec_env = env
        self.render_mode = env.render_mode
        # All agents have the same spaces; copies, so that seeding this one's does not seed theirs.
        agent = env.possible_agents[0]
        self.observation_space: DictSpace = copy.deepcopy(env.observation_space(agent))  # type: ignore[assignment]
        self.action_space: AnyText = copy.deepcopy(env.action_space(agent))

    @property
    def transcript(self) -> Transcript:
        """The episode so far."""
        return self.aec_env.transcript

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start an episode; see `TeamEnv.reset`.

        Args:
            seed: Draws the task.
            options: `{"task_index": i}` plays task `i`.

        Returns:
            The first role's observation, and info.

        Raises:
            ConfigError: If an option or the seed is malformed.
            TaskError: If the source has no task of that index.
        """
        self.aec_env.reset(seed=seed, options=options)
        super().reset(seed=seed)
        agent = self.aec_env.agent_selection
        return self.aec_env.observe(agent), self._next_info()

    def step(self, action: str) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Take the action of the role whose turn it is.

        Args:
            action: Its text.

        Returns:
            The next role's observation (at the end, that of the role that acted), the reward of this action,
            whether the episode has ended, False, and info.

        Raises:
            ActionError: If the action is malformed.
            EpisodeError: If there is no running episode.
        """
        env = self.aec_env
        if not env.layer:
            raise EpisodeError(
                "step() without a running episode", expected="a running episode", fix="call reset() first"
            )
        acted = env.agent_selection
        env.step(action)
        ended = not env.layer
        info = self._next_info()
        news = copy.deepcopy(env.infos[acted])
        info.update({"acted": acted, **{k: v for k, v in news.items() if k != "messages"}})
        finals = env.transcript.final_verdicts
        if finals is not None:
            info["final_verdicts"] = [verdict.public() for verdict in finals]
        observation = env.observe(acted if ended else env.agent_selection)
        return observation, env.rewards[acted], ended, False, info

    def _next_info(self) -> dict[str, Any]:
        env = self.aec_env
        if not env.layer:
            return {"agent": None, "messages": []}
        agent = env.agent_selection
        return {"agent": agent, "messages": copy.deepcopy(env.infos[agent]["messages"])}

    def render(self) -> str | None:
        """Return the transcript as text (`ansi`), or print what is new of it (`human`)."""
        return self.aec_env.render()

    def close(self) -> None:
        """Kill the episode's kernels and delete its workspace; the environment can be reset again."""
        self.aec_env.close()

    def __str__(self) -> str:
        return f"TeamAsGym({self.aec_env})"


def gym_face(make_team: Callable[P, TeamEnv]) -> Callable[P, TeamAsGym]:
    """Return the Gymnasium entry point that goes with an AEC one; it takes the same keywords.

    Args:
        make_team: Class or function that makes a `TeamEnv`.
    """

    # Only `__wrapped__` is set: it is how `envs_registry.make` learns which keywords are right.
    @wraps(make_team, assigned=(), updated=())
    def make_gym(*args: P.args, **kwargs: P.kwargs) -> TeamAsGym:
        return TeamAsGym(make_team(*args, **kwargs))

    return make_gym
