"""One update, here and in TRL's GRPOTrainer, on the same model and the same tokens; and what each agent costs.

    pip install trl                                                # beside this package; nothing here depends on it
    python benchmarks/train_step.py                                # against TRL, on the embedded model
    python benchmarks/train_step.py --agents --model FILE.gguf --rows 8 --longest 32   # memory with 1, 3 and 8 agents

An update is: log-probabilities under the reference, group advantages, one optimiser step over all rows. Both train a
LoRA adapter of the same shape with GRPO and a KL term, in float32. TRL passes 8 rows at a time, its default; here a
pass holds as many padded tokens as 8 rows of mean length have tokens. TRL gets the rows from its own `rollout_func`,
so neither generates. Each measurement is a process of its own; rounds
alternate. Speed is given per second of wall time and of CPU time: on a busy machine the second is the steadier.
Peak memory is the highest resident size during the updates, less that after the imports: it holds the model.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mappa_rl.algorithms import GRPO
from mappa_rl.config import OptimConfig, TrainConfig
from mappa_rl.policy.loading import load_base
from mappa_rl.policy.make import make_team
from mappa_rl.policy.model_team import ModelTeam
from mappa_rl.rollout.row import Row
from mappa_rl.training.optimizers import make_optimizer
from mappa_rl.update import make_batch, update_learner

GROUP, PER_PASS, BETA, LR = 4, 8, 0.01, 1e-5


def make_rows(count: int, vocabulary: int, agents: Sequence[str], longest: int) -> list[Row]:
    """Return rows of random ids: prompts of up to `longest` tokens, `GROUP` responses of up to as many to each."""
    random, rows = np.random.default_rng(0), []
    for number in range(count):
        if number % GROUP == 0:
            prompt = random.integers(5, vocabulary, int(longest / np.exp(random.uniform(0, np.log(4)))))
        response = random.integers(5, vocabulary, int(longest / np.exp(random.uniform(0, np.log(16)))))
        agent = agents[number // GROUP % len(agents)]
        ids = tuple(map(int, prompt)), tuple(map(int, response))
        fields = (float(random.uniform()), agent, agent[:-2], "ok", False, number, number // GROUP, 0, "k", 0.0)
        rows.append(Row(*ids, (-6.0,) * len(response), *fields))
    return rows


def tokens_of(rows: Sequence[Row]) -> int:
    """Return the tokens of prompts and responses."""
    return sum(len(row.prompt_ids) + len(row.response_ids) for row in rows)


def resident(high: bool = False) -> float:
    """Return the resident size, or its highest since `forget_peak`, in MB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:" if high else "VmRSS:")[1].split()[0]) / 1024


def forget_peak() -> None:
    """Start measuring the highest resident size anew."""
    Path("/proc/self/clear_refs").write_text("5")


class Clock:
    """Wall and CPU times of updates; the first one is a warm-up."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def start(self) -> None:
        """An update begins."""
        self._began = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """It has ended."""
        self.wall.append(time.perf_counter() - self._began[0])
        self.cpu.append(time.process_time() - self._began[1])

    def result(self, tokens: int, before: float) -> dict[str, float]:
        """Return tokens per second and the peak."""
        peak = resident(high=True) - before
        return {"per_s": tokens / min(self.wall[1:]), "per_cpu_s": tokens / min(self.cpu[1:]), "peak_mb": peak}


def team_for(model: str, agents: Sequence[str], checkpointing: bool) -> ModelTeam:
    """Return a LoRA team in float32 on the CPU."""
    policy = {"model": model, "device": "cpu", "dtype": "float32", "gradient_checkpointing": checkpointing}
    team = make_team(TrainConfig.model_validate({"policy": policy}), agents)
    assert isinstance(team, ModelTeam)
    return team


def ours(options: argparse.Namespace) -> dict[str, float]:
    """Measure this package."""
    before, agents = resident(), [f"agent_{n}" for n in range(options.team)]
    team = team_for(options.model, agents, options.checkpointing)
    rows = make_rows(options.rows, team.base.model.config.vocab_size, agents, options.longest)
    micro_tokens = PER_PASS * tokens_of(rows) // len(rows)
    optim = OptimConfig(name=options.optimizer, lr=LR, minibatches=1, micro_tokens=micro_tokens)
    settings = TrainConfig(optim=optim)
    optimizers = {name: make_optimizer(team.parameters(name), settings) for name in team.learners}
    algorithm, clock = GRPO(kl="k3_loss", kl_coef=BETA), Clock()
    forget_peak()
    for _ in range(options.updates + 1):
        clock.start()
        batch = make_batch(team, algorithm, rows, temperature=1.0, micro_tokens=optim.micro_tokens)
        advantages = algorithm.advantages(batch)
        for name in team.learners:
            mine = [i for i, row in enumerate(rows) if row.agent == name]
            update_learner(
                team, optimizers[name], algorithm, batch, advantages, [mine], learner=name, optim=optim, temperature=1.0
            )
        clock.stop()
    base = sum(p.numel() * p.element_size() for n, p in team.base.model.named_parameters() if "lora_" not in n)
    adapter = sum(p.numel() * p.element_size() for p in team.parameters(agents[0]))
    values = [s for state in optimizers[agents[0]].state.values() for s in state.values()]
    states = {s.data_ptr(): s for s in values if isinstance(s, torch.Tensor)}.values()  # some are shared
    return {
        **clock.result(tokens_of(rows), before),
        "base_mb": base / 1e6,
        "adapter_mb": adapter / 1e6,
        "optimizer_mb": sum(s.numel() * s.element_size() for s in states) / 1e6,
    }


def trl(options: argparse.Namespace) -> dict[str, float]:
    """Measure TRL."""
    warnings.filterwarnings("ignore")
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    from datasets import Dataset  # type: ignore[import-not-found,unused-ignore]
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer  # type: ignore[import-not-found,unused-ignore]

    before = resident()
    base = load_base(options.model, device="cpu", dtype="float32")
    rows = make_rows(options.rows, base.model.config.vocab_size, ["agent_0"], options.longest)
    clock = Clock()

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        chosen = [rows[int(prompt) * GROUP + n % GROUP] for n, prompt in enumerate(prompts)]
        return {
            "prompt_ids": [list(row.prompt_ids) for row in chosen],
            "completion_ids": [list(row.response_ids) for row in chosen],
            "logprobs": [list(row.logprobs) for row in chosen],
            "score": [row.reward for row in chosen],
        }

    class Timer(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            clock.start()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            clock.stop()

    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=PER_PASS,
        gradient_accumulation_steps=options.rows // PER_PASS,
        num_generations=GROUP,
        max_completion_length=options.longest,
        max_steps=options.updates + 1,
        beta=BETA,
        learning_rate=LR,
        gradient_checkpointing=options.checkpointing,
        bf16=False,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        log_completions=False,
    )
    trainer = GRPOTrainer(
        base.model,
        reward_funcs=lambda score, **_: score,
        args=settings,
        train_dataset=Dataset.from_dict({"prompt": [str(n) for n in range(options.rows // GROUP)]}),
        processing_class=base.tokenizer,
        peft_config=LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"),
        rollout_func=rollout,
        callbacks=[Timer()],
    )
    forget_peak()
    trainer.train()
    return clock.result(tokens_of(rows), before)


def measure(who: str, *, count: int, agents: int, checkpointing: bool, options: argparse.Namespace) -> dict[str, float]:
    """Measure in a process of its own."""
    same = {
        "--model": options.model, "--updates": options.updates, "--longest": options.longest,
        "--optimizer": options.optimizer,
    }  # fmt: skip
    given = {"--worker": who, "--rows": count, "--team": agents, **same}
    command = [sys.executable, __file__, *(str(word) for pair in given.items() for word in pair)]
    command += ["--checkpointing"] if checkpointing else []
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if made.returncode:
        sys.exit(made.stderr)
    numbers: dict[str, float] = json.loads(made.stdout.splitlines()[-1])
    return numbers


def against_trl(options: argparse.Namespace) -> dict[str, Any]:
    """Compare speed and memory, with and without gradient checkpointing (TRL's default is with, ours without)."""
    result: dict[str, Any] = {}
    for checkpointing in (False, True):
        rounds = [
            {
                who: measure(who, count=options.rows, agents=1, checkpointing=checkpointing, options=options)
                for who in ("ours", "trl")
            }
            for _ in range(options.rounds)
        ]
        key = "checkpointing" if checkpointing else "plain"
        for who in ("ours", "trl"):
            names = ("per_s", "per_cpu_s", "peak_mb")
            result[f"{who}/{key}"] = {name: statistics.median(r[who][name] for r in rounds) for name in names}
    for title, mine, theirs in (
        ("each by its defaults", "ours/plain", "trl/checkpointing"),
        ("both plain", "ours/plain", "trl/plain"),
        ("both with checkpointing", "ours/checkpointing", "trl/checkpointing"),
    ):
        a, b = result[mine], result[theirs]
        result[title] = {name: a[name] / b[name] for name in a}
    return result


def of_agents(options: argparse.Namespace) -> dict[str, Any]:
    """Measure teams of 1, 3 and 8 agents on the same number of rows each."""
    result: dict[str, Any] = {}
    for agents in (1, 3, 8):
        count = agents * options.rows
        result[f"agents/{agents}"] = measure("ours", count=count, agents=agents, checkpointing=False, options=options)
    one, eight = result["agents/1"], result["agents/8"]
    result["each further agent, share of the base"] = {
        "adapter": one["adapter_mb"] / one["base_mb"],
        "adapter and optimiser": (one["adapter_mb"] + one["optimizer_mb"]) / one["base_mb"],
        "measured peak": (eight["peak_mb"] - one["peak_mb"]) * 1.048576 / 7 / one["base_mb"],
    }
    return result


def main() -> None:
    """Run the benchmark and print its numbers, as JSON too where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny", help="what policy.model takes")
    parser.add_argument("--rows", type=int, default=64, help="actions of an update (per agent with --agents)")
    parser.add_argument("--longest", type=int, default=256, help="longest prompt, and longest response")
    parser.add_argument("--updates", type=int, default=3, help="timed updates of a process; the fastest counts")
    parser.add_argument("--optimizer", default="adamw", help="what optim.name takes; ours only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--agents", action="store_true", help="memory with 1, 3 and 8 agents")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--worker", choices=("ours", "trl"), help=argparse.SUPPRESS)
    parser.add_argument("--team", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--checkpointing", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps({"ours": ours, "trl": trl}[options.worker](options)))
        return
    load = os.getloadavg()[0]
    result = of_agents(options) if options.agents else against_trl(options)
    result["machine"] = {"python": platform.python_version(), "torch": torch.__version__, "load": load}
    for title, numbers in result.items():
        print(
            f"{title:40}", "  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
        )
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
