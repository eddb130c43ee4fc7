from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mappa_envs import background
from mappa_envs.sandbox import SandboxConfig
from mappa_envs.sandbox.shared import shared_sandbox
from mappa_envs.tasks.math.families import STARTER_FAMILIES
from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_envs.topologies import CHAIN
from mappa_envs.transcript import ToolResult
from mappa_rl.config import TrainConfig
from mappa_rl.evaluation.evaluate import eval_specs, evaluate
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.loading import TINY_FOLDER, load_base
from mappa_rl.policy.make import make_team
from mappa_rl.policy.tiny.build import LEVELS, build, make_demos
from mappa_rl.policy.tiny.demos import Shares, demonstrate, pretend_run, write_program
from mappa_rl.rollout.collector import Collector
from mappa_rl.training.build import make_env

SURE = Shares(plan_right=(1, 1), import_math=1, fenced=1, repaired=1, boxed=1)


async def real_run(code: str) -> ToolResult:
    sandbox = await shared_sandbox(SandboxConfig())
    workspace = await sandbox.workspace()
    kernel = await sandbox.kernel(workspace)
    cell = await kernel.execute(code)
    await kernel.close()
    await workspace.close()
    return ToolResult("python", code, cell.status, cell.output)


@pytest.mark.parametrize("imports", [True, False])
@pytest.mark.parametrize("index", range(len(STARTER_FAMILIES)))
def test_demonstrated_results_are_those_of_the_real_sandbox(index: int, imports: bool) -> None:
    task = ProceduralSource("train", families=STARTER_FAMILIES, levels=LEVELS).task(index)
    assert task.expression is not None
    pretended = pretend_run(write_program(task.expression, imports=imports, fenced=True))
    real = background.run(real_run(pretended.input))
    assert (real.status, real.output.strip()) == (pretended.status, pretended.output.strip())


def test_sure_demonstrators_end_with_the_boxed_answer() -> None:
    source = ProceduralSource("train", families=STARTER_FAMILIES, levels=LEVELS)
    for index in range(20):
        task = source.task(index)
        demos = demonstrate(task, 1.0, SURE, np.random.default_rng(0))
        assert len(demos) == 3
        assert demos[-1].response.endswith(f"\\boxed{{{task.answers[0]}}}")


def test_demonstrations_never_use_the_evaluation_split() -> None:
    evaluation = ProceduralSource("eval", families=STARTER_FAMILIES, levels=LEVELS)
    held_out = {evaluation.task(i).prompt for i in range(200)}
    for demo in make_demos(200, Shares(), seed=0):
        assert not any(prompt in demo.messages[1]["content"] for prompt in held_out)


def test_the_build_command_makes_a_loadable_model_and_repeats_itself(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build(tmp_path / name, seed=3, steps=2, episodes=40, batch=4)
    one, two = (load_base(str(tmp_path / name), device="cpu") for name in ("one", "two"))
    for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert torch.equal(a, b)
    note = json.loads((tmp_path / "one" / "how_it_was_made.json").read_text())
    assert note["seed"] == 3


def test_the_embedded_model_says_how_it_was_made() -> None:
    note = json.loads((TINY_FOLDER / "how_it_was_made.json").read_text())
    assert note["families"] == list(STARTER_FAMILIES)
    assert note["levels"] == list(LEVELS)


@pytest.mark.slow
def test_the_base_team_solves_a_quarter_to_a_half_of_held_out_problems() -> None:
    config = TrainConfig.model_validate({"policy": {"device": "cpu"}})
    team = make_team(config, CHAIN.agents)
    collector = Collector(lambda: make_env(config, "eval"), team, concurrency=50)
    sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
    result, _ = evaluate(collector, eval_specs(200, 1, None), sampling, seed=0)
    collector.close()
    assert 0.25 <= result.success.mean <= 0.5
