"""The workspace that agents share: what is laid out, who wrote what, and what they are shown of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from teams import LengthJudge, Sums, says_done

from envs_registry.errors import ConfigError
from mappa_envs import background
from mappa_envs.inspection import Evidence, FileWork, without_graded
from mappa_envs.messages import MAX_LISTED, build_messages, files_text
from mappa_envs.sandbox import SandboxConfig
from mappa_envs.sandbox.shared import close_shared
from mappa_envs.tasks.base import Task
from mappa_envs.team_env import TeamEnv
from mappa_envs.toolbox import Toolbox
from mappa_envs.topology import Act, Chain, Role, Topology, View, seats
from mappa_envs.transcript import FileRecord, Outcome

CONFIG = SandboxConfig(min_idle=1)


@pytest.fixture(scope="module", autouse=True)
def _no_kernels_left() -> Iterator[None]:
    yield
    close_shared()


def run(box: Toolbox, agent: str, turn: int, code: str) -> str:
    async def both() -> str:
        result = await box.run_python(agent, f"```python\n{code}\n```")
        await box.take_stock(agent, turn)
        return result.output

    return background.run(both())


def test_files_are_put_down_to_whoever_changed_their_content() -> None:
    box = Toolbox(CONFIG, {"a.txt": b"one", "b.txt": b"two"})
    assert [(f.name, f.size, f.writer, f.turn) for f in box.files] == [(f"{n}.txt", 3, "task", None) for n in "ab"]
    assert run(box, "x_0", 0, "print(open('a.txt').read()); _ = open('c.txt', 'w').write('new')").strip() == "one"
    run(box, "y_0", 1, "import os; os.utime('a.txt'); open('b.txt', 'w').write('2'); open('c.txt', 'w').write('new')")
    run(box, "x_0", 2, "os = __import__('os'); os.mkdir('d'); os.rename('a.txt', 'd/a.txt'); os.symlink('b.txt', 'l')")
    records = {f.name: (f.size, f.writer, f.turn) for f in box.files}
    assert records == {"b.txt": (1, "y_0", 1), "c.txt": (3, "x_0", 0), "d/a.txt": (3, "x_0", 2)}
    assert background.run(box.read("c.txt", 10)) == b"new"
    assert background.run(box.read("c.txt", 2)) is None
    assert background.run(box.read("l", 10)) is None and background.run(box.read("../c.txt", 10)) is None
    background.run(box.close())


def test_code_that_runs_apart_sees_its_own_files_only() -> None:
    box = Toolbox(CONFIG, {"a.txt": b"one"})
    run(box, "x_0", 0, "open('secret.txt', 'w').write('s')")
    listing = "import os, json; json.dump(sorted(os.listdir('.')), open('out.json', 'w'))"

    def apart(code: str, **limits: Any) -> bytes | None:
        limits = {"max_bytes": 1000, "timeout": 10.0, **limits}
        return background.run(box.run_apart(code, {"given.txt": b"1"}, "out.json", **limits))

    assert apart(listing) == b'["given.txt"]'
    assert apart("1 / 0") is None
    assert apart("import os; os.symlink('given.txt', 'out.json')") is None
    assert apart("open('out.json', 'w').write('x' * 2000)") is None
    assert apart("import os; open('out.json', 'w').write('x'); os._exit(1)") == b"x"
    assert apart("while True: pass", timeout=0.5) is None
    assert {f.name for f in box.files} == {"a.txt", "secret.txt"}
    background.run(box.close())


def test_a_listing_is_bounded() -> None:
    files = [FileRecord(f"{i:03d}" + "n" * 500, i, "x_0", 0) for i in range(100)]
    text = files_text(files)
    assert text.count("\n") == MAX_LISTED + 1 and text.endswith("- and 60 more")
    assert len(text) < 200 * MAX_LISTED


class Counts:
    """Counts the files that the agents made."""

    def __init__(self, task: Task, evidence: Evidence) -> None:
        self.evidence = evidence

    async def facts(self) -> Mapping[str, Any]:
        found = [name for name in ("x.txt", "y.txt") if await self.evidence.read(name, 10) is not None]
        return {"made": found, "graded": {"right": len(found) == 2}}

    async def outcome(self) -> Outcome:
        return Outcome((await self.facts())["graded"]["right"], 1.0, "counted")


TEAM = Topology(
    name="pair",
    roles=(
        Role("writer", "Write.", duty="write", tool="python", sees=(View("writer"),)),
        Role("reader", "Read.", duty="read", sees=(View("writer"),)),
    ),
    flow=Chain((seats("writer", 2), Act("reader"))),
    answer_role="reader",
)


def test_agents_side_by_side_write_one_after_the_other_and_the_judge_gets_the_facts() -> None:
    judge = LengthJudge()
    work = FileWork(lambda task: {"given.txt": b"1"}, Counts)
    env = TeamEnv(env_id="Test/Files-v0", topology=TEAM, tasks=Sums(), judge=judge, work=work, sandbox=CONFIG,
                  ground_truth="answer")  # fmt: skip
    env.reset(seed=0)
    acts = {f"writer_{i}": f"```python\nopen('{name}.txt', 'w').write('1'); open('both.txt', 'a').write('1')\n```"
            for i, name in enumerate("xy")}  # fmt: skip
    background.run(env.layer_async(acts))
    assert "- x.txt, 1 bytes, written by writer_0 in turn 1" in env.observe("reader_0")["prompt"]
    assert "- both.txt, 2 bytes, written by writer_1 in turn 2" in env.observe("reader_0")["prompt"]
    env.step("Read.")
    assert env.transcript.outcome is not None and env.transcript.outcome.success
    first, second, reader = judge.requests
    assert first.facts == second.facts == {"made": ["x.txt", "y.txt"]}, "not told: nothing graded"
    assert reader.facts["graded"] == {"right": True} and reader.truth is not None
    assert without_graded(reader.facts) == first.facts
    assert [f.name for f in reader.files] == ["both.txt", "given.txt", "x.txt", "y.txt"]
    env.close()


@pytest.mark.parametrize("sees", [(), (View("writer", files=False),)])
def test_files_of_roles_that_no_view_shows_are_not_listed(sees: tuple[View, ...]) -> None:
    blind = Role("reader", "Read.", duty="read", sees=(View("helper"), *sees))
    helper = Role("helper", "Help.", duty="write", sees=(View("writer", files=True),))
    team = replace(
        TEAM, roles=(TEAM.roles[0], helper, blind), flow=Chain((seats("writer", 2), Act("helper"), Act("reader")))
    )
    files = [FileRecord("a", 1, "task", None), *(FileRecord(w, 1, f"{w}_0", 0) for w in ("writer", "helper", "reader"))]
    prompts = {
        agent: build_messages(team, "Do it.", [], f"{agent}_0", files)[-1]["content"] for agent in ("helper", "reader")
    }
    assert [name for name in ("a", "writer", "helper", "reader") if f"- {name}, 1 bytes" in prompts["reader"]] == [
        "a",
        "helper",
        "reader",
    ]
    assert [name for name in ("a", "writer", "helper", "reader") if f"- {name}, 1 bytes" in prompts["helper"]] == [
        "a",
        "writer",
        "helper",
    ]


def test_somebody_has_to_grade_the_episode() -> None:
    with pytest.raises(ConfigError, match="grades"):
        TeamEnv(env_id="T", topology=TEAM, tasks=Sums(), judge=LengthJudge())
    with pytest.raises(ConfigError, match="grades"):
        TeamEnv(env_id="T", topology=TEAM, tasks=Sums(), judge=LengthJudge(), outcome=says_done,
                work=FileWork(lambda task: {}, Counts))  # fmt: skip
