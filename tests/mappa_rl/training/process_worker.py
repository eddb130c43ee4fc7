"""One of several processes that train; run by `test_processes.py` under `torchrun`."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch
from quick_team import PaidJudge, quick_config

from mappa_envs.errors import BudgetError
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.policy.team import Team
from mappa_rl.trainer import Trainer
from mappa_rl.training.processes import launched_processes

# Each process has a judge of its own, and so a memory of its own; equal numbers need one without.
MEMORYLESS = "env.kwargs.judge=quick_team:LetterJudge"
CASES = {
    # Three episodes on two processes.
    "uneven": (
        MEMORYLESS,
        "steps=2",
        "rollout.tasks_per_step=3",
        "rollout.samples_per_task=1",
        "rollout.concurrency=1",
        "eval.tasks=0",
    ),
    # The second process never has an episode.
    "empty": (MEMORYLESS, "steps=1", "rollout.tasks_per_step=1", "rollout.samples_per_task=1", "eval.tasks=1"),
    # Passes for references, and some that are computed again in the backward pass.
    "recomputed": (
        MEMORYLESS,
        "steps=1",
        "rollout.tasks_per_step=3",
        "rollout.concurrency=2",
        "eval.tasks=0",
        "algorithm.name=grpo",
        "policy.gradient_checkpointing=true",
    ),
    # Passes for values, through a model per role.
    "two_models": (
        MEMORYLESS,
        "steps=1",
        "rollout.tasks_per_step=3",
        "rollout.samples_per_task=1",
        "rollout.concurrency=1",
        "eval.tasks=0",
        "algorithm.name=ppo",
        f"policy.per_role.verifier.model={TINY_FOLDER}",
    ),
}


def digest(team: Team) -> str:
    """Return a digest of all that learns."""
    made = hashlib.sha256()
    for learner in team.learners:
        for parameter in team.parameters(learner):
            made.update(parameter.detach().numpy().tobytes())
    return made.hexdigest()


def held(team: ModelTeam) -> float:
    """Return the share of the base's decoder that this process holds."""
    parts = [p for name, p in team.base.model.get_decoder().named_parameters() if "lora_" not in name]
    mine = [getattr(p, "_local_tensor", getattr(p, "ds_tensor", p)) for p in parts]
    return sum(p.numel() for p in mine) / sum(getattr(p, "ds_numel", p.numel()) for p in parts)


def main() -> None:
    out = Path(sys.argv[1])
    processes = launched_processes("cpu")
    report: dict[str, object] = {"processes": processes.count}
    for name, settings in CASES.items():
        trainer = Trainer(quick_config(*settings), out / name, processes=processes)
        trainer.run()
        report[name] = processes.gather(digest(trainer.team))
        report["held"] = processes.gather(held(getattr(trainer.team, "teams", [trainer.team])[-1]))
    report["resumed"] = processes.gather(
        digest(Trainer(quick_config(*CASES["uneven"]), out / "uneven", resume=True, processes=processes).team)
    )

    # A budget that is used up in one process stops both.
    trainer = Trainer(
        quick_config("eval.tasks=0", "steps=2", "rollout.concurrency=2"), out / "paid", processes=processes
    )
    budget = 1000 if processes.first else 6
    trainer.envs["train"].judge = PaidJudge(budget)
    report["paid"] = processes.gather(trainer.run().stopped)

    # An error in one process is raised in both.
    def fail() -> None:
        if not processes.first:
            raise BudgetError("mine")

    try:
        processes.each(fail)
        caught = "nothing"
    except BudgetError as error:
        caught = error.what
    report["caught"] = processes.gather(caught)

    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    if processes.first:
        parameters[0].grad = torch.tensor([1.0, 2.0])
    else:
        parameters[0].grad, parameters[1].grad = torch.tensor([10.0, 20.0]), torch.tensor([5.0])
    processes.sum_gradients(parameters)
    report["gradients"] = processes.gather([p.grad.tolist() for p in parameters if p.grad is not None])
    if processes.first:
        (out / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
