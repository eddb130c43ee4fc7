"""A topology of your own: two who draft side by side, a worker who sees both drafts, a checker who answers."""

import mappa_envs
from mappa_envs.topologies import register_topology
from mappa_envs.topology import Topology, View, chain, seats


def two_drafts(domain, *, drafts=2):
    roles = (
        domain.propose.role("drafter", "You are a Drafter of a team."),
        domain.prove.role("worker", "You see what others drafted; use the best of it.", View("drafter")),
        domain.conclude.role("checker", "You have the last word in a team.", View("worker", turns="last")),
    )
    flow = chain(seats("drafter", drafts), domain.prove.act("worker"), domain.conclude.act("checker"))
    return Topology("two_drafts", roles, flow, answer_role="checker")


register_topology("two_drafts", two_drafts)

if __name__ == "__main__":
    env = mappa_envs.make("Mappa/MathChat-v0", topology="two_drafts", render_mode="ansi")
    env.reset(seed=7)
    while env.layer:
        env.step("```python\nprint(2 + 2)\n```" if env.agent_selection != "checker_0" else "\\boxed{4}")
    print(env.render())
    env.close()
