"""RLlib's PPO trains all agents of a team through RLlib's own PettingZoo wrapper; each chooses among fixed texts.

ray 2.60 pins an older Gymnasium than this package needs, and works with the newer one:
`pip install "ray[rllib]" torch` first, then `pip install mappa-gym`.
"""

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo.utils import BaseWrapper
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env

import mappa_envs
from mappa_envs.tasks.listed import ListedSource
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.topology import Role, Topology, View, chain

ITERATIONS = 4
TASKS = [
    MathTask(id=f"3{sign}4", prompt=f"What is 3 {sign} 4?", kind=sign, source="example", answers=(str(value),))
    for sign, value in (("+", 7), ("*", 12))
]
TEXTS = {
    "solver_0": ("Compute: 3 + 4", "Compute: 3 * 4", "I do not know."),
    "verifier_0": ("\\boxed{7}", "\\boxed{12}", "I do not know."),
}
PAIR = Topology(
    name="pair",
    roles=(
        Role("solver", "End with one line `Compute: EXPRESSION`.", duty="solve"),
        Role("verifier", "Give one answer as \\boxed{ANSWER}.", duty="answer", sees=(View("solver"),)),
    ),
    flow=chain("solver", "verifier"),
    answer_role="verifier",
)


class Choices(BaseWrapper):
    """The team with numbers in place of texts: an agent sees which signs its prompt holds, and picks a text."""

    def observation_space(self, agent):
        """Return two bits."""
        return Box(0.0, 1.0, (2,), np.float32)

    def action_space(self, agent):
        """Return the number of texts."""
        return Discrete(3)

    def observe(self, agent):
        """Return whether the prompt holds a plus and a times sign."""
        prompt = super().observe(agent)["prompt"].partition("Problem:")[2]
        return np.array([" + " in prompt, " * " in prompt], np.float32)

    def step(self, action):
        """Take the text of that number."""
        super().step(None if action is None else TEXTS[self.agent_selection][action])


def make_env(config):
    """Return the team in RLlib's wrapper."""
    return PettingZooEnv(Choices(mappa_envs.make("Mappa/MathChat-v0", topology=PAIR, tasks=ListedSource("two", TASKS))))


register_env("team", make_env)
algorithm = (
    PPOConfig()
    .environment("team")
    .env_runners(num_env_runners=0)
    .learners(num_learners=0)
    .multi_agent(policies=set(TEXTS), policy_mapping_fn=lambda agent, *_, **__: agent)
    .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
    .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=8, lr=5e-3, gamma=1.0)
    .debugging(seed=0)
    .build_algo()
)
for iteration in range(ITERATIONS):
    result = algorithm.train()["env_runners"]
    returns = {agent: round(value, 2) for agent, value in result["agent_episode_returns_mean"].items()}
    print(f"iteration {iteration + 1}: mean return of the team {result['episode_return_mean']:.2f}, {returns}")
algorithm.stop()
