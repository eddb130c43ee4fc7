"""Checks for authors of environments: determinism to the last step, and agreement of the three faces.

PettingZoo 1.27's `parallel_seed_test` looks at one step only (its #1437), and none of the stock checks looks
into another process, where string hashes differ. `check_determinism` and `check_across_processes` do.

```python
from mappa_envs.testing import check_across_processes, check_determinism, check_faces_agree

check_determinism(lambda: mappa_envs.make("Acme/Relay-v0"))
check_across_processes("acme.relay:Acme/Relay-v0")
check_faces_agree("acme.relay:Acme/Relay-v0")
```
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo import AECEnv, ParallelEnv

from envs_registry import make
from mappa_envs.errors import ConfigError, MappaError
from mappa_envs.spaces import AnyText

Policy = Callable[[str, int, Any], Any]
"""Gives an agent's action from its name, how often it acted before, and its action space."""

Record = dict[str, Any]

MAX_STEPS = 1000
_TEXTS = (
    "",
    "I do not know.",
    "First add the numbers.\nCompute: 2 + 3",
    "The answer is \\boxed{7}.",
    "<think>\\boxed{1}</think> Größe: \\boxed{\\frac{1}{2}} \N{SMILING FACE WITH SUNGLASSES}",
)


class CheckError(MappaError, AssertionError):
    """An environment does not keep its contract."""


def scripted_policy(seed: int = 0, texts: Sequence[str] = _TEXTS) -> Policy:
    """Return a policy whose actions depend on its arguments only, so on no process and no face.

    Args:
        seed: Chooses among the possible actions.
        texts: What it writes where the action space is text; other spaces are sampled.
    """

    def act(agent: str, turn: int, space: Any) -> Any:
        rng = np.random.default_rng([seed, zlib.crc32(agent.encode()), turn])
        if isinstance(space, AnyText):
            return texts[int(rng.integers(len(texts)))]
        own = copy.deepcopy(space)
        own.seed(int(rng.integers(2**31)))
        return own.sample()

    return act


def trace(env: Any, *, seed: int, policy: Policy | None = None) -> list[Record]:
    """Play one episode, dead steps included, and return all that an agent or trainer could see of it.

    Args:
        env: An AEC, parallel or Gymnasium environment.
        seed: Given to `reset`.
        policy: Chooses the actions; `scripted_policy(seed)` by default.

    Returns:
        One record per `reset` or `step`, at most `MAX_STEPS`.

    Raises:
        ConfigError: If `env` is none of the three.
    """
    players: dict[type, Callable[[Any, int, Policy], Iterator[Record]]] = {
        AECEnv: _play_aec,
        ParallelEnv: _play_parallel,
        gymnasium.Env: _play_gym,
    }
    for kind, play in players.items():
        if isinstance(env, kind):
            records = play(env, seed, policy or scripted_policy(seed))
            return [copy.deepcopy(record) for record, _ in zip(records, range(MAX_STEPS), strict=False)]
    raise ConfigError("trace plays environments", expected="an AECEnv, ParallelEnv or gymnasium.Env", got=repr(env))


def _play_aec(env: Any, seed: int, policy: Policy) -> Iterator[Record]:
    env.reset(seed=seed)
    turns: dict[str, int] = dict.fromkeys(env.possible_agents, 0)
    yield {"agents": env.agents, "infos": env.infos}
    while env.agents:
        agent = env.agent_selection
        observation, _, terminated, truncated, info = env.last()
        before = {"agent": agent, "observation": copy.deepcopy(observation), "info": copy.deepcopy(info)}
        action = None
        if not (terminated or truncated):
            action = policy(agent, turns[agent], env.action_space(agent))
            turns[agent] += 1
        env.step(action)
        yield {
            **before,
            "action": action,
            "agents": env.agents,
            "rewards": env.rewards,
            "terminations": env.terminations,
            "truncations": env.truncations,
            "infos": env.infos,
        }


def _play_parallel(env: Any, seed: int, policy: Policy) -> Iterator[Record]:
    observations, infos = env.reset(seed=seed)
    turns: dict[str, int] = dict.fromkeys(env.possible_agents, 0)
    yield {"agents": env.agents, "observations": observations, "infos": infos}
    while env.agents:
        acting = getattr(env, "layer", env.agents)
        actions = {a: policy(a, turns[a], env.action_space(a)) for a in acting}
        turns.update({a: turns[a] + 1 for a in acting})
        observations, rewards, terminations, truncations, infos = env.step(actions)
        yield {
            "actions": actions,
            "agents": env.agents,
            "observations": observations,
            "rewards": rewards,
            "terminations": terminations,
            "truncations": truncations,
            "infos": infos,
        }


def _play_gym(env: Any, seed: int, policy: Policy) -> Iterator[Record]:
    observation, info = env.reset(seed=seed)
    turns: dict[str, int] = {}
    yield {"observation": observation, "info": info}
    ended = False
    while not ended:
        agent = info.get("agent", "")
        action = policy(agent, turns.get(agent, 0), env.action_space)
        turns[agent] = turns.get(agent, 0) + 1
        observation, reward, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        yield {
            "action": action,
            "observation": observation,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "info": info,
        }


def check_determinism(
    make_env: Callable[[], Any], *, seeds: Iterable[int] = (0, 1, 2), policy: Policy | None = None
) -> None:
    """Check that a seed and actions fix the whole episode, in two instances and in one that played others.

    Args:
        make_env: Makes an AEC, parallel or Gymnasium environment.
        seeds: Seeds to play.
        policy: Chooses the actions; `scripted_policy(seed)` by default.

    Raises:
        CheckError: Naming seed, step and field of the first difference.
    """
    first, second = make_env(), make_env()
    seeds = tuple(seeds)
    try:
        traces = {seed: trace(first, seed=seed, policy=policy) for seed in seeds}
        for seed in reversed(seeds):
            _check_equal(traces[seed], trace(second, seed=seed, policy=policy), f"seed {seed}, two instances")
            _check_equal(traces[seed], trace(first, seed=seed, policy=policy), f"seed {seed}, played twice")
    finally:
        first.close()
        second.close()


def check_across_processes(
    id: str, *, seeds: Sequence[int] = (0, 1), hash_seeds: Sequence[str] = ("0", "1"), face: str = "aec"
) -> None:
    """Check that fresh processes with different `PYTHONHASHSEED` play the same episodes.

    Args:
        id: A registered id; `module:Namespace/Name-vN` when nothing else imports the module that registers
            it.
        seeds: Seeds to play.
        hash_seeds: Values of `PYTHONHASHSEED`, one process each.
        face: The face to play.

    Raises:
        CheckError: Naming seed, step and field of the first difference, or with the error of a process that
            failed.
    """
    results = [_traces_in_process(id, seeds, face, value) for value in hash_seeds]
    for value, result in zip(hash_seeds[1:], results[1:], strict=True):
        for seed, ours, theirs in zip(seeds, results[0], result, strict=True):
            _check_equal(ours, theirs, f"seed {seed}, PYTHONHASHSEED {hash_seeds[0]} and {value}")


def _traces_in_process(id: str, seeds: Sequence[int], face: str, hash_seed: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "mappa_envs.testing", id, face, *map(str, seeds)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    if done.returncode != 0:
        raise CheckError(
            f"{id} failed in a fresh process (PYTHONHASHSEED {hash_seed})", got=done.stderr.strip()[-2000:]
        )
    return json.loads(done.stdout.splitlines()[-1])


def check_faces_agree(
    id: str, *, seeds: Iterable[int] = (0, 1, 2), policy: Policy | None = None, **overrides: Any
) -> None:
    """Check that the AEC, parallel and Gymnasium faces give equal texts, rewards and verdicts.

    Args:
        id: A registered id with all three faces.
        seeds: Seeds to play.
        policy: Chooses the actions; `scripted_policy(seed)` by default.
        **overrides: Given to `make`.

    Raises:
        CheckError: Naming seed, turn and field of the first difference.
    """
    envs = {"aec": make(id, **overrides)}
    envs["parallel"] = make(id, face="parallel", **overrides)
    envs["gym"] = make(id, face="gym", **overrides)
    try:
        for seed in seeds:
            turns = {face: _turns(trace(env, seed=seed, policy=policy)) for face, env in envs.items()}
            for face in ("parallel", "gym"):
                _check_equal(turns["aec"], turns[face], f"seed {seed}, faces aec and {face}")
    finally:
        for env in envs.values():
            env.close()


def _turns(records: list[Record]) -> list[Record]:
    """Reduce a trace of any face to the turns: who saw what, wrote what, and got what."""
    turns: list[Record] = []
    for before, after in pairwise(records):
        if "actions" in after:
            turns += [
                _turn(
                    agent,
                    before["observations"][agent],
                    action,
                    after["rewards"][agent],
                    after["infos"][agent],
                )
                for agent, action in after["actions"].items()
            ]
        elif "acted" in after.get("info", {}):
            seen, info = before["observation"], after["info"]
            turns.append(_turn(info["acted"], seen, after["action"], after["reward"], info))
        elif after["action"] is not None:
            agent = after["agent"]
            turns.append(
                _turn(
                    agent,
                    after["observation"],
                    after["action"],
                    after["rewards"][agent],
                    after["infos"][agent],
                )
            )
    return turns


def _turn(agent: str, observation: Any, action: Any, reward: float, info: dict[str, Any]) -> Record:
    news = {key: info.get(key) for key in ("verdict", "tools", "outcome")}
    return {"agent": agent, "observation": observation, "action": action, "reward": reward, **news}


def _check_equal(ours: list[Record], theirs: list[Record], where: str) -> None:
    for step, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        for key in sorted({*one, *other}):
            if not data_equivalence(one.get(key), other.get(key), exact=True):
                raise CheckError(
                    f"episodes differ ({where}): {key!r} of step {step}",
                    expected=_short(one.get(key)),
                    got=_short(other.get(key)),
                    fix="draw all random numbers from a generator that reset(seed) seeds; loop over no set",
                )
    if len(ours) != len(theirs):
        raise CheckError(f"episodes differ ({where})", expected=f"{len(ours)} steps", got=f"{len(theirs)} steps")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:150]} ... {text[-150:]}"


def _main(id: str, face: Any, *seeds: str) -> None:
    env = make(id, face=face)
    traces = [trace(env, seed=int(seed)) for seed in seeds]
    env.close()
    print(json.dumps(traces, default=lambda value: value.tolist()))


if __name__ == "__main__":
    _main(*sys.argv[1:])
