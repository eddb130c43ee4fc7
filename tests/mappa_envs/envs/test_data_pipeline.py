"""Episodes of `Mappa/DataPipeline-v0` with real kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest
from table_cases import Cases

import mappa_envs
from envs_registry.errors import ConfigError
from mappa_envs.envs.data_pipeline import DataPipeline
from mappa_envs.errors import TaskError
from mappa_envs.sandbox.shared import close_shared
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.transcript import Transcript

READ = "import pandas as pd\nread = lambda name: pd.read_csv(name, dtype={'row_id': str}).set_index('row_id')\n"
ENGINEER = """train, test = read("train.csv"), read("test.csv")
y = train.pop("target")
for name, part in (("X_train.csv", train), ("X_test.csv", test)):
    part = part[["size", "weight", "shape"]].assign(flat=part["shape"] == "flat", round=part["shape"] == "round")
    part.drop(columns="shape").fillna(0).astype(float).to_csv(name)
y.to_frame().to_csv("y_train.csv")"""
MODELER = """import json, joblib
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
x, y = read("X_train.csv"), read("y_train.csv")["target"]
joblib.dump(LogisticRegression().fit(x, y), "model.joblib")
json.dump({"value": cross_val_score(LogisticRegression(), x, y).mean()}, open("validation.json", "w"))"""
ANALYST = """import joblib
new = read("X_test.csv")
pd.DataFrame({"target": joblib.load("model.joblib").predict(new)}, new.index).to_csv("submission.csv")"""
REPORT = "All is saved."


def fenced(code: str) -> str:
    return f"Here it is.\n```python\n{READ}{code}\n```"


HONEST = [fenced(ENGINEER), REPORT, fenced(MODELER), REPORT, fenced(ANALYST), REPORT]


def play(env: DataPipeline, actions: list[str]) -> list[dict[str, Any]]:
    """Play an episode and return what could be seen in it."""
    env.reset(seed=0)
    seen = []
    for action in actions:
        agent = env.agent_selection
        before = env.observe(agent)
        env.step(action)
        seen.append({"agent": agent, "prompt": before["prompt"], "reward": env.rewards[agent], "infos": env.infos})
    return seen


@pytest.fixture(scope="module")
def env() -> Iterator[DataPipeline]:
    made = DataPipeline(tasks=Cases(["labels"]))
    yield made
    made.close()
    close_shared()


@pytest.fixture(scope="module")
def honest(env: DataPipeline) -> tuple[list[dict[str, Any]], Transcript]:
    return play(env, HONEST), env.transcript


def test_an_honest_team_gets_full_marks_and_succeeds(honest: Any) -> None:
    seen, transcript = honest
    assert [one["agent"] for one in seen] == [f"{r}_0" for r in ("engineer",) * 2 + ("modeler",) * 2 + ("analyst",) * 2]
    assert [one["reward"] for one in seen] == [1.0] * 6, [t.verdict.reason for t in transcript.turns]
    assert transcript.outcome.success and transcript.outcome.details["valid"]
    assert seen[-1]["infos"]["analyst_0"]["outcome"]["success"] is True


def test_agents_see_the_files_and_who_wrote_them_when(honest: Any) -> None:
    seen, _ = honest
    assert "- train.csv" in seen[0]["prompt"] and "part of the task" in seen[0]["prompt"]
    assert "X_train.csv, " not in seen[0]["prompt"]
    assert "written by engineer_0 in turn 1" in seen[1]["prompt"]
    assert "Engineer wrote:\nAll is saved." in seen[2]["prompt"], "the last turn of the role before"
    assert "- model.joblib, " in seen[4]["prompt"] and "written by modeler_0 in turn 3" in seen[4]["prompt"]
    assert "- submission.csv" not in seen[4]["prompt"] and "- submission.csv" in seen[5]["prompt"]


def test_the_transcript_keeps_files_and_findings(honest: Any) -> None:
    _, transcript = honest
    last = {file.name: file for file in transcript.turns[-1].files}
    assert (last["submission.csv"].writer, last["submission.csv"].turn) == ("analyst_0", 4)
    assert (last["train.csv"].writer, last["train.csv"].turn) == ("task", None)
    assert transcript.turns[0].facts["checked"]["features.saved"]["met"]
    assert Transcript.from_json(transcript.to_json()).turns[0].facts == transcript.turns[0].facts


def test_the_same_actions_give_the_same_episode(env: DataPipeline, honest: Any) -> None:
    seen, _ = honest
    assert play(env, HONEST) == seen


def test_no_answer_and_no_copy_of_the_data_can_be_read(env: DataPipeline) -> None:
    answers = env.tasks.task(0).answers()["target"].tolist()
    # A file of the sandbox that held the answers in their order would have this piece. What is left out is the
    # system's and the interpreter's.
    skipped = ("proc", "sys", "usr", "dev", "lib", "lib64", "bin", "sbin", *Path(sys.executable).resolve().parts[1:2])
    skipped += Path(mappa_envs.__file__).parts[1:2] + Path(joblib.__file__).parts[1:2]
    hunt = f"""import os
from sklearn.datasets import make_classification
found = []
places = [".", *(f"/{{name}}" for name in os.listdir("/") if name not in {skipped!r})]
for folder, _, names in (step for place in places for step in os.walk(place)):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.path.getsize(path) < 1e6:
            try:
                last = [line.rpartition(",")[2] for line in open(path).read().split()[1:13]]
                found += [path] if last == {answers[:12]!r} else []
            except (OSError, ValueError):
                pass
print("found", found)
try:
    from sklearn.datasets import load_iris
    print("iris", load_iris().data.shape)
except Exception as error:
    print("no iris", type(error).__name__)"""
    env.reset(seed=0)
    env.step(f"```python\n{hunt}\n```")
    output = env.transcript.turns[0].tools[0].output
    assert "found []" in output and "no iris" in output, output


def test_a_role_ends_with_a_turn_without_code_or_at_its_limit() -> None:
    short = DataPipeline(tasks=Cases(["labels"]), turns=2)
    short.reset(seed=0)
    agents = []
    while short.layer:
        agents.append(short.agent_selection)
        short.step("```python\n1\n```" if agents[-1] == "engineer_0" else "I am done.")
    assert agents == ["engineer_0", "engineer_0", "modeler_0", "analyst_0"]
    short.close()


def test_without_ground_truth_the_judge_learns_nothing_from_it() -> None:
    told, untold = (DataPipeline(tasks=Cases(["labels"]), ground_truth=g) for g in ("all", "none"))
    reasons = []
    for one in (told, untold):
        one.reset(seed=0)
        one.step("Nothing.")
        reasons.append(one.transcript.turns[0].verdict.reason)
    assert "a plain model learns" in reasons[0] and "a plain model learns" not in reasons[1]


@pytest.mark.parametrize("topology", ["solo", "debate", "mixture", "prover_verifier", "star", "chain"])
def test_every_topology_is_scored_by_the_rules(topology: str) -> None:
    env = DataPipeline(tasks=Cases(["labels"]), topology=topology)
    env.reset(seed=0)
    while env.layer:
        env.step("Use `size` in a forest, hold out a fold. Next: analyst. [DONE]")
    statuses = {turn.verdict.status for turn in env.transcript.turns}
    assert statuses == {"ok"}, [turn.verdict.reason for turn in env.transcript.turns]


def test_the_outcome_judge_and_mistakes() -> None:
    env = mappa_envs.make("Mappa/DataPipeline-v0", tasks=Cases(["labels"]), judge="outcome", turns=1)
    env.reset(seed=0)
    while env.layer:
        env.step("Nothing.")
    assert [v.score for v in env.transcript.final_verdicts] == [0.0] * 3

    class Sums:
        name = "sums"
        size: int | None = 1

        def task(self, index: int) -> MathTask:
            return MathTask(id="1", prompt="1 + 1?", kind="sum", source="sums", answers=("2",))

    with pytest.raises(TaskError, match="tables"):
        DataPipeline(tasks=Sums()).reset(seed=0)
    with pytest.raises(ConfigError, match="turns"):
        DataPipeline(tasks=Cases(), turns=0)
    with pytest.raises(ConfigError, match="success_above"):
        DataPipeline(tasks=Cases(), success_above="high")  # type: ignore[arg-type]
