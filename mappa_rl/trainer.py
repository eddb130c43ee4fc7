"""The trainer: play, judge, learn; each agent from its own scores."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mappa_envs.errors import BudgetError
from mappa_envs.tasks.math.contamination import ContaminationReport
from mappa_rl.algorithms import Algorithm, make_algorithm
from mappa_rl.checkpoint import checkpoint_folder, load_newest, prune_checkpoints, save_checkpoint
from mappa_rl.config import TrainConfig
from mappa_rl.errors import CheckpointError, TrainingError
from mappa_rl.evaluation.contamination import refuse_contamination
from mappa_rl.evaluation.evaluate import Evaluation, compare, eval_specs, summarise
from mappa_rl.evaluation.result import task_digest
from mappa_rl.files import write_folder
from mappa_rl.policy.base import Sampling
from mappa_rl.policy.make import make_team
from mappa_rl.report.curve import learning_curve
from mappa_rl.report.metrics import MetricsWriter
from mappa_rl.rollout.collector import Collector
from mappa_rl.training.build import make_env
from mappa_rl.training.facts import rollout_metrics
from mappa_rl.training.failures import check_failures
from mappa_rl.training.learner import Learner
from mappa_rl.training.order import rollout_seed, step_specs
from mappa_rl.training.playing import play, play_evaluation
from mappa_rl.training.processes import Processes
from mappa_rl.training.result import TrainResult, best_step, evaluations_since_best
from mappa_rl.training.run_folder import RunFolder

Report = Callable[[str, dict[str, Any]], None]
"""Called with `contamination`, `eval` or `step` and a record, for progress displays."""


class Trainer:
    """Trains a team as a config says.

    Every random choice derives from `config.seed` and the step, so that a run can be repeated, and resumed from a
    checkpoint as if it had never stopped.

    Args:
        config: The run.
        run_dir: The run's folder; must be new or empty unless `resume`. All processes must see it.
        resume: Go on from the newest whole checkpoint in `run_dir`, or from the start if there is none yet.
        report: Hears of every evaluation and step, in the first process.
        processes: The processes that train together; None is this one alone.

    Raises:
        ConfigError: If the folder is in use, or the run in it has other settings.
        PolicyError: If the model cannot be loaded.
        CheckpointError: If there is nothing to resume, or every checkpoint is damaged.
        ContaminationError: If held-out tasks are training tasks, unless `eval.contamination` allows it.
    """

    def __init__(
        self,
        config: TrainConfig,
        run_dir: Path,
        *,
        resume: bool = False,
        report: Report | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.config, self.run_dir, self.folder = config, run_dir, RunFolder(run_dir)
        self.processes = processes or Processes()
        self.report = report if report and self.processes.first else lambda kind, record: None
        self.processes.on_first(lambda: self.folder.start(config, resume=resume))
        # Cheap things first: a misspelt setting must not wait for a large model to load.
        self.algorithm: Algorithm = make_algorithm(config.algorithm.name, **config.algorithm.kwargs)
        self.envs = {"train": make_env(config, "train")}
        contamination = None
        if config.eval.tasks:
            self.envs["eval"] = make_env(config, "eval")
            contamination = self._check_contamination()
        self.team = make_team(
            config,
            self.envs["train"].possible_agents,
            value_heads=self.algorithm.needs_values,
            sharding=self.processes.sharding,
        )
        self.learner = Learner(config, self.team, self.algorithm, self.processes, run_dir)
        self.step = 0
        """Training steps that are done."""
        self.evaluations: dict[int, Evaluation] = {}
        """By the number of training steps before them."""
        self._saved = 0
        # Settings that nothing could be made of leave the folder empty, so that it can be used for better ones.
        self.processes.on_first(lambda: self.folder.write_settings(config))
        if contamination is not None:
            self.processes.on_first(lambda: self.folder.write_json("contamination.json", asdict(contamination)))
        self._metrics: MetricsWriter | None = None
        if resume:
            self._resume()

    def run(self) -> TrainResult:
        """Train to the last step and write the run folder.

        A judge's budget that is used up ends the run early and cleanly: there is a checkpoint of the last whole step,
        and `TrainResult.stopped` says why.

        Raises:
            TrainingError: If too large a share of verdicts or episodes failed (there is a checkpoint of the last whole
                step), or a number of the learning is not finite (the batch is saved).
        """
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            collector = stack.enter_context(contextlib.closing(self._collector("train")))
            if self.processes.first:
                self._metrics = stack.enter_context(MetricsWriter(self.run_dir, keep_until=self.step))
            try:
                stopped = self._steps(collector)
            except BudgetError as error:
                self._save()
                stopped = f"{error.what}; {error.fix}" if error.fix else error.what
        before = self.evaluations.get(0)
        trained = [step for step in self.evaluations if step > 0]
        after = self.evaluations[max(trained)] if trained else None
        result = TrainResult(
            self.run_dir,
            before,
            after,
            compare(after, before) if after and before else None,
            self.step,
            best_step(self.evaluations),
            stopped,
            time.monotonic() - started,
        )
        self.processes.on_first(lambda: self._finish(result))
        return result

    def _steps(self, collector: Collector) -> str | None:
        """Go on to the last step; return why it was not reached."""
        config = self.config
        while True:
            last = self.step == config.steps
            if config.eval.tasks and self.step not in self.evaluations and self._due(config.eval.every, last):
                self._evaluate()
            waited = evaluations_since_best(self.evaluations)
            impatient = bool(config.eval.patience) and waited >= config.eval.patience
            if self._due(config.save_every, last or impatient or best_step(self.evaluations) == self.step):
                self._save()
            if last:
                return None
            if impatient:
                return f"held-out success was best after step {best_step(self.evaluations)} (eval.patience={waited})"
            self._learn(self.step + 1, collector)
            self.step += 1

    def _due(self, every: int, anyway: bool) -> bool:
        return anyway or self.step == 0 or (every > 0 and self.step % every == 0)

    def _learn(self, step: int, collector: Collector) -> None:
        config = self.config
        experience = play(
            collector,
            step_specs(config.rollout, seed=config.seed, step=step, size=self.envs["train"].tasks.size),
            Sampling(temperature=config.rollout.temperature, max_new_tokens=config.policy.max_new_tokens),
            seed=rollout_seed(config.seed, step),
            outcome_weight=config.outcome_weight if config.reward == "mixed" else None,
            keep=config.keep_transcripts,
            processes=self.processes,
        )
        self.processes.on_first(lambda: self.folder.write_transcripts("train", step, experience.records))
        try:
            check_failures(experience.facts, config.rollout.max_failed_share)
        except TrainingError:
            self._save()
            raise
        record = rollout_metrics(step, experience.facts)
        record |= self.learner.learn(step, experience.rows, experience.facts)
        self.envs["train"].judge.commit()
        if self._metrics is not None:
            self._metrics.write(record)
        self.report("step", record)

    def _evaluate(self) -> None:
        config, step, source = self.config, self.step, self.envs["eval"].tasks
        specs = eval_specs(config.eval.tasks, config.eval.samples, source.size)
        sampling = Sampling(temperature=config.eval.temperature, max_new_tokens=config.policy.max_new_tokens)
        with contextlib.closing(self._collector("eval")) as collector:
            records = play_evaluation(collector, specs, sampling, seed=config.seed, processes=self.processes)
        result = summarise(records)
        self.evaluations[step] = result
        if self._metrics is not None:
            self.folder.write_evaluation(step, result, records, task_digest(source, specs))
            self.folder.write_curve(self.evaluations)
            scores = {f"eval/score/{agent}": score for agent, score in result.scores.items()}
            self._metrics.show({"step": step, "eval/success": result.success.mean, **scores})
        self.report("eval", {"step": step, "evaluation": result})

    # Files -------------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save a checkpoint of the last whole step, unless there is one; before the first step there is nothing yet."""
        if self.step in (0, self._saved):
            return
        judges = self.processes.gather(self.envs["train"].judge.state())
        best = best_step(self.evaluations)

        def save() -> None:
            state = {"step": self.step, "seed": self.config.seed, "judges": judges}
            folder = checkpoint_folder(self.run_dir, self.step)
            save_checkpoint(folder, self.team, self.learner.optimizers, state)
            prune_checkpoints(self.run_dir, last=self.config.keep_last, keep=() if best is None else (best,))

        self.processes.on_first(save)
        self._saved = self.step

    def _resume(self) -> None:
        state = self.processes.each(lambda: load_newest(self.run_dir, self.team, self.learner.optimizers))
        if state is not None:
            self.step = self._saved = int(state["step"])
            states = state["judges"]
            if len(states) != self.processes.count and any(states):
                raise CheckpointError(
                    "the judge's memory is split over processes",
                    expected=f"{len(states)} processes, as before",
                    got=str(self.processes.count),
                    fix="resume with as many processes as the run had",
                )
            if len(states) == self.processes.count:
                self.envs["train"].judge.restore(states[self.processes.rank])
        self.evaluations = self.processes.on_first(lambda: self.folder.cut_back(self.step))

    def _finish(self, result: TrainResult) -> None:
        if self._metrics is not None:
            curve = self.run_dir / "learning_curve.png"
            learning_curve(curve, self._metrics.records, sorted(self.evaluations.items()))
        write_folder(self.run_dir / "adapters", self.team.save)
        self.folder.write_json("summary.json", result.to_json())

    def _check_contamination(self) -> ContaminationReport | None:
        config = self.config
        report = refuse_contamination(
            self.envs["train"].tasks,
            self.envs["eval"].tasks,
            train_tasks=config.steps * config.rollout.tasks_per_step,
            eval_tasks=config.eval.tasks,
            mode=config.eval.contamination,
        )
        if report is not None:
            self.report("contamination", {"report": report})
        return report

    def _collector(self, split: str) -> Collector:
        """Return a collector whose environments share one judge: its memory and its limits are the run's."""
        judge = self.envs[split].judge
        return Collector(
            lambda: make_env(self.config, split, judge=judge), self.team, concurrency=self.config.rollout.concurrency
        )
