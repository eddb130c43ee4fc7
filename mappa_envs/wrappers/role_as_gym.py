"""One role of a team as a Gymnasium agent; everybody else is played by a fixed policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
from gymnasium.spaces import Dict as DictSpace

from envs_registry.errors import did_you_mean
from mappa_envs import background
from mappa_envs.errors import ConfigError, EpisodeError
from mappa_envs.spaces import AnyText
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Message, Transcript

Others = Callable[[str, Sequence[Message]], str]
"""Plays the other agents: `others(agent, messages) -> action`, the same action for the same arguments."""


class RoleEnv(gymnasium.Env[dict[str, str], str]):
    """One agent of a `TeamEnv` as a `gymnasium.Env`.

    A `step` takes the agent's action and then plays the others until it is the agent's turn again or the episode has
    ended. The reward is that of the agent's own action; others who act beside it in a layer do not see its turn, nor
    it theirs.

    `info` holds `agent` and its `messages`; after a step also its `verdict` and `tools`; at the end `outcome`. From a
    judge that scores whole episodes, the reward comes at the last step.

    Args:
        env: The environment; it must not be stepped by anybody else.
        agent: The agent that is played from outside.
        others: Plays everybody else.

    Raises:
        ConfigError: If `env` is no `TeamEnv` or has no such agent.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "human"],
        # Gymnasium's checker warns without one, though text has no frame rate.
        "render_fps": 1,
    }

    def __init__(self, env: TeamEnv, agent: str, others: Others) -> None:
        if not isinstance(env, TeamEnv):
            raise ConfigError("RoleEnv shows a TeamEnv", expected="a TeamEnv", got=repr(env))
        if agent not in env.possible_agents:
            raise ConfigError(
                f"there is no agent {agent!r}",
                expected=f"one of {', '.join(env.possible_agents)}",
                fix=did_you_mean(agent, env.possible_agents, "pass an agent id, with its seat"),
            )
        if not callable(others):
            raise ConfigError("others is no policy", expected="a function of agent and messages", got=repr(others))
        self.aec_env, self.agent, self.others = env, agent, others
        self.render_mode = env.render_mode
        self.observation_space: DictSpace = copy.deepcopy(env.observation_space(agent))  # type: ignore[assignment]
        self.action_space: AnyText = copy.deepcopy(env.action_space(agent))

    @property
    def transcript(self) -> Transcript:
        """The episode so far, with the turns of all agents."""
        return self.aec_env.transcript

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start an episode and play it up to the agent's first turn.

        Args:
            seed: Draws the task.
            options: `{"task_index": i}` plays task `i`.

        Raises:
            ConfigError: If an option or the seed is malformed.
            EpisodeError: If the episode ended without a turn of the agent (a hub never picked its role).
        """
        self.aec_env.reset(seed=seed, options=options)
        super().reset(seed=seed)
        self._play_others()
        if not self.aec_env.layer:
            raise EpisodeError(
                f"the episode ended without a turn of {self.agent!r}",
                expected="others that let it act",
                fix="play another agent, or other policies for the rest of the team",
            )
        return self.aec_env.observe(self.agent), self._info()

    def step(self, action: str) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Take the agent's action, then play the others.

        Returns:
            The agent's observation, the reward of this action, whether the episode has ended, False, and info.

        Raises:
            ActionError: If the action, or one of the others', is malformed.
            EpisodeError: If there is no running episode.
        """
        env = self.aec_env
        if not env.layer:
            raise EpisodeError(
                "step() without a running episode", expected="a running episode", fix="call reset() first"
            )
        index = len(env.transcript.turns)
        # The agent goes first: an action of its own that is refused must not leave its layer half played.
        background.run(env.layer_async({self.agent: action}))
        tools = copy.deepcopy(env.infos[self.agent]["tools"])
        self._play_others()
        # Judges of whole episodes have given theirs only now.
        verdict = env.transcript.verdict(index)
        info = {**self._info(), "verdict": verdict.public(), "tools": tools}
        ended = not env.layer
        if ended:
            info["outcome"] = copy.deepcopy(env.infos[self.agent]["outcome"])
        return env.observe(self.agent), verdict.reward, ended, False, info

    def _play_others(self) -> None:
        env = self.aec_env
        while env.layer and self.agent not in env.layer:
            actions = {a: self.others(a, env.messages(a)) for a in env.layer}
            background.run(env.layer_async(actions))

    def _info(self) -> dict[str, Any]:
        acts = bool(self.aec_env.layer)
        messages = [dict(m) for m in self.aec_env.messages(self.agent)] if acts else []
        return {"agent": self.agent if acts else None, "messages": messages}

    def render(self) -> str | None:
        """Return the transcript as text (`ansi`), or print what is new of it (`human`)."""
        return self.aec_env.render()

    def close(self) -> None:
        """Kill the episode's kernels and delete its workspace; the environment can be reset again."""
        self.aec_env.close()

    def __str__(self) -> str:
        return f"RoleEnv({self.aec_env}, agent={self.agent!r})"
