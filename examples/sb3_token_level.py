"""stable-baselines3's PPO writes a solver's plan token by token; the verifier beside it is fixed.

The mean return must rise by `MARGIN` for each seed. `pip install "mappa-gym[sb3]"`; another number of seeds than three
is the first argument.
"""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import mappa_envs
from mappa_envs.tasks.listed import ListedSource
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.topology import Role, Topology, View, chain
from mappa_envs.wrappers.role_as_gym import RoleEnv
from mappa_envs.wrappers.token_level import TokenLevelEnv
from mappa_envs.wrappers.vocabulary import PieceVocabulary

MARGIN = 0.3
STEPS = 6144
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


def make_env():
    """Return the solver as a Gymnasium environment of tokens."""
    team = mappa_envs.make("Mappa/MathChat-v0", topology=PAIR, tasks=ListedSource("sums", TASKS))
    tokens = PieceVocabulary(["Compute: ", " + ", " * ", *map(str, NUMBERS)])
    return TokenLevelEnv(RoleEnv(team, "solver_0", verifier), tokens, max_tokens=4, prompt_tokens=5)


for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    envs = make_vec_env(make_env, n_envs=8, seed=seed)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=128, learning_rate=2e-3, ent_coef=0.01, gamma=1.0, seed=seed)
    before, _ = evaluate_policy(model, envs, n_eval_episodes=128, deterministic=False)
    model.learn(STEPS)
    after, _ = evaluate_policy(model, envs, n_eval_episodes=128, deterministic=False)
    print(f"seed {seed}: mean return {before:.2f} before, {after:.2f} after", flush=True)
    if after - before < MARGIN:
        sys.exit(f"seed {seed}: the return rose by less than {MARGIN}")
    envs.close()
