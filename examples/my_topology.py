"""A topology of your own: two planners side by side, a coder who sees both plans, a checker who answers."""

import mappa_envs
from mappa_envs.topologies import MATHS, register_topology
from mappa_envs.topology import Role, Topology, View, chain, seats

TWO_PLANS = Topology(
    name="two_plans",
    roles=(
        Role("planner", "Work out the key steps. End with one line `Compute: EXPRESSION`.", duty="solve"),
        MATHS.propose.role("coder", "You get two plans; use the better one.", View("planner")),
        MATHS.conclude.role("checker", "You are the Checker of a maths team.", View("coder", turns="last")),
    ),
    flow=chain(seats("planner", 2), MATHS.propose.act("coder"), "checker"),
    answer_role="checker",
)
register_topology("two_plans", TWO_PLANS)

if __name__ == "__main__":
    env = mappa_envs.make("Mappa/MathChat-v0", topology="two_plans", render_mode="ansi")
    env.reset(seed=7)
    texts = {"planner": "Compute: 2 + 2", "coder": "```python\nprint(2 + 2)\n```", "checker": "\\boxed{4}"}
    while env.layer:
        env.step(texts[env.topology.role_of(env.agent_selection).name])
    print(env.render())
    env.close()
