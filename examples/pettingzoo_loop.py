"""A plain PettingZoo loop over a team environment, with no learning package: read the reward right after `step`."""

import mappa_envs

env = mappa_envs.make("Mappa/MathChat-v0", render_mode="ansi")
env.reset(seed=7)
total = 0.0
for agent in env.agent_iter():
    observation, _, termination, truncation, info = env.last()
    if termination or truncation:
        env.step(None)
        continue
    # A real policy would read info["messages"]; these fixed texts show what the judge makes of them.
    env.step(
        {
            "solver_0": "Compute: 2 + 2",
            "coder_0": "```python\nprint(2 + 2)\n```",
            "verifier_0": "\\boxed{4}",
        }[agent]
    )
    total += env.rewards[agent]
print(env.render())
print(f"sum of process rewards: {total:.2f}")
env.close()
