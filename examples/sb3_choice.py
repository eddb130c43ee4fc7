"""stable-baselines3's PPO chooses among plans that are proposed to a solver; the verifier beside it is fixed.

The mean return must rise by `MARGIN` for each seed. `pip install "mappa-gym[sb3]"`; another number of seeds than three
is the first argument.
"""

import re
import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import mappa_envs
from mappa_envs.tasks.listed import ListedSource
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.topology import Role, Topology, View, chain
from mappa_envs.wrappers.choice import ChoiceEnv
from mappa_envs.wrappers.role_as_gym import RoleEnv
from mappa_envs.wrappers.vocabulary import PieceVocabulary

MARGIN = 0.3
STEPS = 2048
NUMBERS = range(1, 5)
TASKS = [
    MathTask(id=f"{a}{sign}{b}", prompt=f"What is {a} {sign} {b}?", kind=sign, source="example", answers=(str(value),))
    for a in NUMBERS
    for b in NUMBERS
    for sign, value in (("+", a + b), ("*", a * b))
]
PAIR = Topology(
    name="pair",
    roles=(
        Role("solver", "End with one line `Compute: EXPRESSION`.", duty="solve"),
        Role("verifier", "Give one answer as \\boxed{ANSWER}.", duty="answer", sees=(View("solver"),)),
    ),
    flow=chain("solver", "verifier"),
    answer_role="verifier",
)


def verifier(agent, messages):
    """Box the expression that the solver wrote."""
    return f"\\boxed{{{messages[1]['content'].rpartition('Compute: ')[2].strip()}}}"


def propose(agent, messages):
    """Propose four plans; which one is right depends on the problem."""
    a, b = re.findall(r"\d+", messages[1]["content"])
    return f"Compute: {a} + {b}", f"Compute: {a} * {b}", f"Compute: {a}", "I do not know."


def make_env():
    """Return the solver as a Gymnasium environment of choices."""
    team = mappa_envs.make("Mappa/MathChat-v0", topology=PAIR, tasks=ListedSource("sums", TASKS))
    tokens = PieceVocabulary(["+", "*"])
    return ChoiceEnv(RoleEnv(team, "solver_0", verifier), propose, count=4, vocabulary=tokens, prompt_tokens=3)


for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    envs = make_vec_env(make_env, n_envs=8, seed=seed)
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, learning_rate=2e-3, ent_coef=0.01, gamma=1.0, seed=seed)
    before, _ = evaluate_policy(model, envs, n_eval_episodes=128, deterministic=False)
    model.learn(STEPS)
    after, _ = evaluate_policy(model, envs, n_eval_episodes=128, deterministic=False)
    print(f"seed {seed}: mean return {before:.2f} before, {after:.2f} after", flush=True)
    if after - before < MARGIN:
        sys.exit(f"seed {seed}: the return rose by less than {MARGIN}")
    envs.close()
