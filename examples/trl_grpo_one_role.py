"""TRL's GRPO trains the coder of a maths team; solver and verifier are the embedded model, frozen.

Needs `pip install "mappa-gym[rl]" trl`. Each completion is judged in the environment, by the verdict on that action.
"""

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

import mappa_envs
from mappa_envs.wrappers.role_as_gym import RoleEnv
from mappa_rl.config import TrainConfig
from mappa_rl.policy.base import PolicyRequest, Sampling
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.policy.make import make_team

TASKS, STEPS = 8, 2
team = mappa_envs.make("Mappa/MathChat-v0")
frozen = make_team(TrainConfig(), team.possible_agents)


def others(agent, messages):
    """Play the frozen roles, greedily."""
    (sample,) = frozen.act([PolicyRequest(agent, messages)], Sampling(temperature=0, max_new_tokens=96), seed=0)
    return sample.text


coder = RoleEnv(team, "coder_0", others)


def verdict(completions, task_index, **_):
    """Return the judge's score of each completion, 0 to 1."""
    rewards = []
    for (message,), index in zip(completions, task_index, strict=True):
        coder.reset(options={"task_index": index})
        rewards.append(coder.step(message["content"])[1])
    return rewards


rows = [{"prompt": coder.reset(options={"task_index": i})[1]["messages"], "task_index": i} for i in range(TASKS)]
trainer = GRPOTrainer(
    model=str(TINY_FOLDER),
    reward_funcs=verdict,
    train_dataset=Dataset.from_list(rows),
    args=GRPOConfig(
        output_dir="trl_run",
        max_steps=STEPS,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=96,
        learning_rate=1e-3,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    ),
)
trainer.train()
for record in trainer.state.log_history:
    if "reward" in record:
        print(f"step {record['step']}: mean verdict of the coder {record['reward']:.2f}")
coder.close()
