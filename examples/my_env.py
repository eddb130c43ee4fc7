"""An environment of your own: tasks, a judge that scores each action, an outcome, a team; made by its id."""

import mappa_envs
from mappa_envs import Act, Judge, Outcome, Role, Topology, Verdict
from mappa_envs.tasks.base import Task
from mappa_envs.team_env import TeamEnv

TEAM = Topology("one", (Role("speller", "Answer with the word only.", duty="spell"),), Act("speller"), "speller")


class Words:
    name, size = "words", 3

    def task(self, index):
        word = ("coach", "agent", "reward")[index]
        return Task(id=word, prompt=f"Spell {word} backwards.", kind="spelling", source=self.name)


class Letters(Judge):
    id = "letters-1"

    async def score(self, requests):
        shares = [sum(map(str.__eq__, r.action, r.truth.id[::-1])) / len(r.truth.id) for r in requests]
        return [Verdict.ok(10 * share, f"{share:.0%} of the letters are right", self.id) for share in shares]


async def spelt(task, topology, turns):
    return Outcome(turns[-1].action == task.id[::-1], float(turns[-1].action == task.id[::-1]), "compared")


def spelling(topology=TEAM, render_mode=None):
    given = {"env_id": "Mine/Spelling-v0", "topology": topology, "render_mode": render_mode}
    return TeamEnv(tasks=Words(), judge=Letters(), outcome=spelt, **given)


mappa_envs.register("Mine/Spelling-v0", spelling)

if __name__ == "__main__":
    env = mappa_envs.make("Mine/Spelling-v0", render_mode="ansi")
    env.reset(seed=1)
    env.step("tnega")
    print(env.render())
