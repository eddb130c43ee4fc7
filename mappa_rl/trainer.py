"""The trainer: play, judge, learn; each agent from its own scores."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import envs_registry
from mappa_envs.team_env import TeamEnv
from mappa_rl.algorithms import Algorithm, TokenBatch, make_algorithm
from mappa_rl.checkpoint import checkpoint_folder, latest_checkpoint, load_checkpoint, save_checkpoint
from mappa_rl.config import TrainConfig, dump_config
from mappa_rl.errors import CheckpointError, ConfigError, TrainingError
from mappa_rl.evaluation.contamination import refuse_contamination
from mappa_rl.evaluation.evaluate import Evaluation, compare, eval_specs, evaluate
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.result import task_digest, write_result
from mappa_rl.evaluation.stats import PairedComparison
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.loading import load_base
from mappa_rl.policy.lora_team import LoraTeam
from mappa_rl.report.curve import learning_curve
from mappa_rl.report.metrics import MetricsWriter
from mappa_rl.rollout.collector import Collector, Episode, EpisodeSpec, derive_seed, rows_of
from mappa_rl.rollout.rewards import mix_outcome
from mappa_rl.rollout.row import Row
from mappa_rl.update import update_agent

_TRAIN = 1


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a finished run came to."""

    run_dir: Path
    before: Evaluation | None
    after: Evaluation | None
    comparison: PairedComparison | None
    """After against before, on the same tasks and seeds."""
    seconds: float
    """Wall time of the whole run."""


Report = Callable[[str, dict[str, Any]], None]
"""Called with `contamination`, `eval` or `step` and a record, for progress displays."""


class Trainer:
    """Trains a LoRA team as a config says.

    Every random choice derives from `config.seed` and the step, so that a run can be repeated, and resumed from a
    checkpoint as if it had never stopped.

    Args:
        config: The run.
        run_dir: The run's folder; must be new or empty unless `resume`.
        resume: Go on from the newest checkpoint in `run_dir`.
        report: Hears of every evaluation and step.

    Raises:
        ConfigError: If the folder is in use.
        PolicyError: If the model cannot be loaded.
        CheckpointError: If there is nothing to resume.
        ContaminationError: If held-out tasks are training tasks, unless `eval.contamination` allows it.
    """

    def __init__(
        self, config: TrainConfig, run_dir: Path, *, resume: bool = False, report: Report | None = None
    ) -> None:
        self.config, self.run_dir = config, run_dir
        self.report = report or (lambda kind, record: None)
        if not resume and run_dir.exists() and any(run_dir.iterdir()):
            raise ConfigError(
                f"run folder {run_dir} is not empty",
                expected="a new folder",
                fix="choose another run_dir, or resume the run in it",
            )
        run_dir.mkdir(parents=True, exist_ok=True)
        # Cheap things first: a misspelt setting must not wait for a large model to load.
        self.algorithm: Algorithm = make_algorithm(config.algorithm.name, **config.algorithm.kwargs)
        self._train_env = self._env("train")
        self._eval_env = self._env("eval") if config.eval.tasks else self._train_env
        if config.eval.tasks:
            self._check_contamination()
        self.team = make_team(config, self._train_env.possible_agents)
        self.optimizers = {
            agent: torch.optim.AdamW(
                self.team.parameters(agent),
                lr=config.learning_rate,
                betas=config.optim.betas,
                weight_decay=config.optim.weight_decay,
            )
            for agent in self.team.agents
        }
        self.start_step = 0
        self._before: Evaluation | None = None
        if resume:
            self._resume()

    def run(self) -> TrainResult:
        """Train to the last step and write the run folder.

        Raises:
            TrainingError: If too large a share of verdicts or episodes failed, or a loss is not finite.
        """
        config, started = self.config, time.monotonic()
        (self.run_dir / "config.yaml").write_text(dump_config(config), encoding="utf-8")
        collector = Collector(lambda: self._env("train"), self.team, concurrency=config.rollout.concurrency)
        evals: list[tuple[int, Evaluation]] = []
        with MetricsWriter(self.run_dir, keep_until=self.start_step if self.start_step else None) as metrics:
            if self.start_step == 0 and config.eval.tasks:
                self._before = self._evaluate(0)
            if self._before:
                evals.append((0, self._before))
            for step in range(self.start_step + 1, config.steps + 1):
                record = self._step(step, collector)
                metrics.write(record)
                self.report("step", record)
                last = step == config.steps
                if config.eval.tasks and (last or (config.eval.every and step % config.eval.every == 0)):
                    evals.append((step, self._evaluate(step)))
                if last or (config.save_every and step % config.save_every == 0):
                    self._save(step)
            learning_curve(self.run_dir / "learning_curve.png", metrics.records, evals)
        collector.close()
        self.team.save(self.run_dir / "adapters")
        after = evals[-1][1] if evals and evals[-1][0] > 0 else None
        comparison = compare(after, self._before) if after and self._before else None
        result = TrainResult(self.run_dir, self._before, after, comparison, time.monotonic() - started)
        self._write_summary(result)
        return result

    # One step ----------------------------------------------------------------------------------------------------

    def _step(self, step: int, collector: Collector) -> dict[str, Any]:
        config = self.config
        sampling = Sampling(temperature=config.rollout.temperature, max_new_tokens=config.policy.max_new_tokens)
        episodes = collector.collect(self._specs(step), sampling, seed=derive_seed(config.seed, _TRAIN, step))
        self._record_transcripts(step, episodes)
        rows = rows_of(episodes)
        record = rollout_metrics(step, episodes, rows)
        if config.reward == "mixed":
            rows = mix_outcome(rows, episodes, config.outcome_weight)
        check_failures(episodes, rows, config.rollout.max_failed_share)
        self._set_learning_rate(step)
        batch = self._batch(rows)
        advantages = self.algorithm.advantages(batch)
        for agent in self.team.agents:
            chosen = [i for i, row in enumerate(rows) if row.agent == agent and row.trainable]
            if chosen:
                order = np.random.default_rng(derive_seed(config.seed, _TRAIN, step, 1)).permutation(chosen)
                made = update_agent(
                    self.team,
                    self.optimizers[agent],
                    self.algorithm,
                    batch,
                    advantages,
                    [int(i) for i in order],
                    agent=agent,
                    optim=config.optim,
                    temperature=config.rollout.temperature,
                )
                record |= {f"{name}/{agent}": value for name, value in made.items()}
        return record

    def _specs(self, step: int) -> list[EpisodeSpec]:
        rollout = self.config.rollout
        first = (step - 1) * rollout.tasks_per_step
        indexes = [self._task_index(first + i) for i in range(rollout.tasks_per_step)]
        return [
            EpisodeSpec(task_index=index, group=group, seed=sample)
            for group, index in enumerate(indexes)
            for sample in range(rollout.samples_per_task)
        ]

    def _task_index(self, position: int) -> int:
        """Return the task at a position of the endless training order: finite sources are shuffled anew each epoch."""
        size = self._train_env.tasks.size
        if size is None:
            return position
        epoch, at = divmod(position, size)
        return int(np.random.default_rng(derive_seed(self.config.seed, _TRAIN, 2, epoch)).permutation(size)[at])

    def _batch(self, rows: Sequence[Row]) -> TokenBatch:
        reference = None
        if self.algorithm.needs_reference:
            reference = self.team.all_reference_logprobs(
                rows, temperature=self.config.rollout.temperature, micro_tokens=self.config.optim.micro_tokens
            )
        return TokenBatch.from_rows(rows, ref_logprobs=reference, device=self.team.device)

    def _set_learning_rate(self, step: int) -> None:
        optim, total = self.config.optim, self.config.steps
        warmup = max(1, round(optim.warmup_share * total))
        progress = min(1.0, max(0.0, (step - warmup) / max(1, total - warmup)))
        cosine = optim.final_lr_share + (1 - optim.final_lr_share) * 0.5 * (1 + math.cos(math.pi * progress))
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = self.config.learning_rate * (step / warmup if step < warmup else cosine)

    # Evaluation, files -------------------------------------------------------------------------------------------

    def _evaluate(self, step: int) -> Evaluation:
        config = self.config
        collector = Collector(lambda: self._env("eval"), self.team, concurrency=config.rollout.concurrency)
        sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
        specs = eval_specs(config.eval.tasks, config.eval.samples, self._eval_env.tasks.size)
        result, episodes = evaluate(collector, specs, sampling, seed=config.seed)
        collector.close()
        write_transcripts(self.run_dir / "transcripts" / f"eval-{step:06d}.jsonl", episodes)
        digest = task_digest(self._eval_env.tasks, specs)
        write_result(self.run_dir / f"eval-{step:06d}.json", result, {"step": step, "tasks_sha256": digest})
        self.report("eval", {"step": step, "evaluation": result})
        return result

    def _check_contamination(self) -> None:
        config = self.config
        report = refuse_contamination(
            self._train_env.tasks,
            self._eval_env.tasks,
            train_tasks=config.steps * config.rollout.tasks_per_step,
            eval_tasks=config.eval.tasks,
            mode=config.eval.contamination,
        )
        if report is not None:
            text = json.dumps(asdict(report), indent=2)
            (self.run_dir / "contamination.json").write_text(text + "\n", encoding="utf-8")
            self.report("contamination", {"report": report})

    def _record_transcripts(self, step: int, episodes: Sequence[Episode]) -> None:
        write_transcripts(
            self.run_dir / "transcripts" / f"train-{step:06d}.jsonl", episodes[: self.config.keep_transcripts]
        )

    def _save(self, step: int) -> None:
        state = {"step": step, "seed": self.config.seed}
        save_checkpoint(checkpoint_folder(self.run_dir, step), self.team, self.optimizers, state)

    def _resume(self) -> None:
        folder = latest_checkpoint(self.run_dir)
        if folder is None:
            raise CheckpointError(f"no checkpoint in {self.run_dir}", fix="start the run anew, or name its folder")
        self.start_step = int(load_checkpoint(folder, self.team, self.optimizers)["step"])
        before = self.run_dir / "eval-000000.json"
        if before.is_file():
            self._before = Evaluation.from_json(json.loads(before.read_text(encoding="utf-8")))

    def _write_summary(self, result: TrainResult) -> None:
        summary = {
            "before": result.before.to_json() if result.before else None,
            "after": result.after.to_json() if result.after else None,
            "after_against_before": result.comparison.to_json() if result.comparison else None,
            "seconds": round(result.seconds, 1),
        }
        (self.run_dir / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")

    def _env(self, split: str) -> TeamEnv:
        return make_env(self.config, split)


def make_env(config: TrainConfig, split: str) -> TeamEnv:
    """Make the config's environment on a split.

    Raises:
        ConfigError: If the id does not name an environment of this project's kind.
    """
    kwargs = {**config.env.kwargs, "split": split}
    if config.reward == "outcome":
        kwargs["judge"] = "outcome"
    env = envs_registry.make(config.env.id, **kwargs)
    if not isinstance(env, TeamEnv):
        raise ConfigError(
            f"environment {config.env.id!r} cannot be trained on",
            expected="a mappa_envs.team_env.TeamEnv",
            got=type(env).__name__,
        )
    return env


def make_team(config: TrainConfig, agents: Sequence[str]) -> LoraTeam:
    """Load the config's base model and give every agent an adapter.

    Raises:
        PolicyError: If the model cannot be loaded.
    """
    policy = config.policy
    base = load_base(
        policy.model,
        gguf_file=policy.gguf_file,
        dtype=policy.dtype,
        device=policy.device,
        attention=policy.attention,
    )
    return LoraTeam(
        base,
        agents,
        rank=policy.lora_rank,
        alpha=policy.lora_alpha,
        targets=policy.lora_targets,
        seed=config.seed,
        max_prompt_tokens=policy.max_prompt_tokens,
        batch_size=config.rollout.concurrency,
        gradient_checkpointing=policy.gradient_checkpointing,
    )


def check_failures(episodes: Sequence[Episode], rows: Sequence[Row], limit: float) -> None:
    """Stop when too many verdicts or episodes failed: numbers from the rest would mislead.

    Raises:
        TrainingError: If the share of failed verdicts or lost episodes is over `limit` (0 to 1).
    """
    lost = [e for e in episodes if e.transcript is None]
    failed = [r for r in rows if r.status == "failed"]
    for what, bad, total in (("episodes", len(lost), len(episodes)), ("verdicts", len(failed), len(rows))):
        if total and bad / total > limit:
            example = lost[0].failure if what == "episodes" else _first_failure(episodes)
            raise TrainingError(
                f"{bad} of {total} {what} failed",
                expected=f"at most {limit:.0%} (rollout.max_failed_share)",
                got=f"{bad / total:.0%}; for example: {example}",
                fix="mend the judge or the sandbox, then resume",
            )


def _first_failure(episodes: Sequence[Episode]) -> str:
    transcripts = [episode.transcript for episode in episodes if episode.transcript]
    for transcript in transcripts:
        for turn in transcript.turns:
            verdict = transcript.verdict(turn.index)
            if verdict.status == "failed":
                return verdict.reason
    outcomes = [t.outcome for t in transcripts if t.outcome is not None and t.outcome.success is None]
    return f"outcome undecided: {outcomes[0].reason}" if outcomes else "unknown"


def rollout_metrics(step: int, episodes: Sequence[Episode], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the numbers of one step's rollouts: success, and per agent score, failed and truncated shares, length."""
    outcomes = [e.transcript.outcome for e in episodes if e.transcript and e.transcript.outcome]
    record: dict[str, Any] = {
        "step": step,
        "episodes": len(episodes),
        "lost_episodes": sum(e.transcript is None for e in episodes),
        "success": float(np.mean([bool(o.success) for o in outcomes])) if outcomes else 0.0,
        "undecided": sum(o.success is None for o in outcomes),
    }
    for agent in dict.fromkeys(row.agent for row in rows):
        mine = [row for row in rows if row.agent == agent]
        scored = [10 * row.reward for row in mine if row.status == "ok"]
        if scored:
            record[f"score/{agent}"] = float(np.mean(scored))
        record[f"failed/{agent}"] = sum(row.status == "failed" for row in mine) / len(mine)
        record[f"truncated/{agent}"] = sum(row.truncated for row in mine) / len(mine)
        record[f"tokens/{agent}"] = float(np.mean([len(row.response_ids) for row in mine]))
    return record


def write_transcripts(path: Path, episodes: Sequence[Episode | EpisodeRecord]) -> None:
    """Write finished episodes as JSONL, one transcript a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(e.transcript.to_json(), ensure_ascii=False) for e in episodes if e.transcript]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
