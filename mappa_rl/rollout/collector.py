"""Playing many episodes at once on one machine.

All live episodes move in waves: the turns that are due are sampled in one batch per agent, then their tools and
verdicts run concurrently. A wave depends on nothing but seeds and texts, so a run can be repeated and resumed exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.team_env import TeamEnv
from mappa_envs.transcript import Transcript
from mappa_rl.policy.base import Policy, PolicyRequest, Sample, Sampling
from mappa_rl.rollout.row import Row


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """Which episode to play."""

    task_index: int
    group: int
    """Episodes of one group play the same task."""
    seed: int = 0
    """Kept in the transcript."""


@dataclass(slots=True)
class Episode:
    """A played episode: its record, and the sample behind each turn."""

    spec: EpisodeSpec
    transcript: Transcript | None = None
    """None when the sandbox failed; such an episode is counted, and neither trained on nor scored."""
    samples: list[Sample] = field(default_factory=list)
    failure: str | None = None


def derive_seed(*parts: int) -> int:
    """Return a 63-bit seed from integers, the same in every process."""
    words = np.random.SeedSequence(parts).generate_state(2, np.uint32)
    return int(words[0]) << 31 | int(words[1]) >> 1


class Collector:
    """Plays episodes with a policy in environments that it makes once and reuses.

    Args:
        make_env: Makes one environment; all of them must be alike.
        policy: Plays every agent.
        concurrency: Episodes that are under way at once.
    """

    def __init__(self, make_env: Callable[[], TeamEnv], policy: Policy, *, concurrency: int = 64) -> None:
        self.policy, self.concurrency = policy, concurrency
        self._make_env = make_env
        self._envs: list[TeamEnv] = []

    def collect(self, specs: Sequence[EpisodeSpec], sampling: Sampling, *, seed: int, first: int = 0) -> list[Episode]:
        """Play one episode per spec and return them in order.

        Args:
            specs: Episodes to play.
            sampling: How the policy samples.
            seed: The same specs, policy and seed give the same episodes.
            first: Place of the first spec, where the specs are a part of more: a multiple of `concurrency` gives the
                episodes that all specs at once would give there.
        """
        done: list[Episode] = []
        for start in range(0, len(specs), self.concurrency):
            done += self._play(specs[start : start + self.concurrency], sampling, derive_seed(seed, first + start))
        return done

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()
        self._envs = []

    def _play(self, specs: Sequence[EpisodeSpec], sampling: Sampling, seed: int) -> list[Episode]:
        while len(self._envs) < len(specs):
            self._envs.append(self._make_env())
        envs = self._envs[: len(specs)]
        episodes = [Episode(spec) for spec in specs]
        for env, spec in zip(envs, specs, strict=True):
            env.reset(seed=spec.seed, options={"task_index": spec.task_index})
        wave = 0
        while True:
            due = [(i, agent) for i, env in enumerate(envs) if episodes[i].failure is None for agent in env.layer]
            if not due:
                break
            requests = [PolicyRequest(agent, envs[i].messages(agent)) for i, agent in due]
            samples = self.policy.act(requests, sampling, seed=derive_seed(seed, wave))
            actions: dict[int, dict[str, str]] = {}
            for (i, agent), sample in zip(due, samples, strict=True):
                actions.setdefault(i, {})[agent] = sample.text
                episodes[i].samples.append(sample)
            background.run(_step_all([(envs[i], episodes[i], acts) for i, acts in actions.items()]))
            wave += 1
        for env, episode in zip(envs, episodes, strict=True):
            if episode.failure is None:
                episode.transcript = env.transcript
        return episodes


async def _step_all(moves: Sequence[tuple[TeamEnv, Episode, dict[str, str]]]) -> None:
    async def one(env: TeamEnv, episode: Episode, actions: dict[str, str]) -> None:
        try:
            await env.layer_async(actions)
        except SandboxError as error:
            episode.failure = str(error)

    await asyncio.gather(*(one(*move) for move in moves))


def rows_of(episodes: Sequence[Episode]) -> list[Row]:
    """Return one training row per turn of the episodes that were played to their end.

    Rows keep the verdict's status; which of them are trained on is `Row.trainable`. The reward is the one to learn
    from: that of the final verdict where the judge scores whole episodes.
    """
    rows = []
    for number, episode in enumerate(episodes):
        transcript = episode.transcript
        if transcript is None:
            continue
        for turn, sample in zip(transcript.turns, episode.samples, strict=True):
            verdict = transcript.verdict(turn.index)
            rows.append(
                Row(
                    prompt_ids=sample.prompt_ids,
                    response_ids=sample.response_ids,
                    logprobs=sample.logprobs,
                    reward=verdict.reward,
                    agent=turn.agent,
                    role=turn.role,
                    status=verdict.status,
                    truncated=sample.truncated,
                    episode=number,
                    group=episode.spec.group,
                    turn=turn.index,
                    kind=transcript.task_kind,
                    outcome=transcript.outcome.score if transcript.outcome else 0.0,
                )
            )
    return rows
