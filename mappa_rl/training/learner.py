"""Learning from the rows of a step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor
from torch.optim import Optimizer

from mappa_rl.algorithms import Algorithm, AlgorithmError, GroupSizeError, TokenBatch
from mappa_rl.config import TrainConfig
from mappa_rl.errors import ConfigError, MappaError, NonFiniteError, TrainingError
from mappa_rl.policy.team import Team
from mappa_rl.rollout.row import Row
from mappa_rl.training.facts import EpisodeFacts
from mappa_rl.training.failures import save_batch, with_batch
from mappa_rl.training.optimizers import make_optimizer
from mappa_rl.training.order import learning_rate, shuffled
from mappa_rl.training.processes import Processes
from mappa_rl.update import make_batch, update_learner


class Learner:
    """A team's optimisers, and the algorithm that drives them.

    Args:
        config: The run.
        team: Who learns.
        algorithm: Gives advantages and losses.
        processes: Each passes its own rows; all of them take the same optimiser steps.
        run_dir: Where a batch that breaks the learning is saved.

    Raises:
        ConfigError: If the team has no learner, or its optimiser is not installed.
    """

    def __init__(
        self, config: TrainConfig, team: Team, algorithm: Algorithm, processes: Processes, run_dir: Path
    ) -> None:
        if not team.learners:
            raise ConfigError(
                "no agent learns",
                expected="at least one role with a model that is not frozen",
                fix="take a role out of policy.frozen, or its script out of policy.per_role",
            )
        self.config, self.team, self.algorithm = config, team, algorithm
        self.processes, self.run_dir = processes, run_dir
        self.optimizers: dict[str, Optimizer] = {
            learner: make_optimizer(team.parameters(learner), config) for learner in team.learners
        }

    def learn(self, step: int, rows: Sequence[Row], episodes: Sequence[EpisodeFacts]) -> dict[str, float]:
        """Update every learner and return its metrics as `<name>/<learner>`.

        Which rows make an optimiser step depends on the seed and on the episodes of all processes, and so do the
        metrics.

        Args:
            step: From 1.
            rows: This process's; `Row.episode` is the episode's position.
            episodes: Those of all processes, in order of position.

        Raises:
            TrainingError: If an advantage, loss or gradient is not finite; the batch is saved and named.
        """
        config = self.config
        self._set_learning_rate(step)
        optim, temperature = config.optim, config.rollout.temperature
        batch = make_batch(
            self.team,
            self.algorithm,
            rows,
            temperature=temperature,
            micro_tokens=optim.micro_tokens,
            reduce=self.processes.reduce,
        )
        self.processes.drain()
        try:
            advantages = self.algorithm.advantages(batch)
        except GroupSizeError:
            raise
        except AlgorithmError as error:
            raise self._stop(error, step, batch, None) from error
        place = {(row.episode, row.turn): i for i, row in enumerate(batch.rows)}
        record: dict[str, float] = {}
        for learner, agents in self.team.learners.items():
            keys = [(e.position, t.turn) for e in episodes for t in e.turns if t.trainable and t.agent in agents]
            keys = [keys[i] for i in shuffled(len(keys), seed=config.seed, step=step)]
            parts = [keys[n :: optim.minibatches] for n in range(optim.minibatches)]
            try:
                made = update_learner(
                    self.team,
                    self.optimizers[learner],
                    self.algorithm,
                    batch,
                    advantages,
                    [[place[key] for key in part if key in place] for part in parts],
                    learner=learner,
                    optim=optim,
                    temperature=temperature,
                    sum_gradients=self.processes.sum_gradients,
                )
            except NonFiniteError as error:
                raise self._stop(error, step, batch, advantages) from error
            record |= {f"{name}/{learner}": value for name, value in made.items()}
        return record

    def _set_learning_rate(self, step: int) -> None:
        rate = learning_rate(self.config, step)
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate

    def _stop(self, error: MappaError, step: int, batch: TokenBatch, advantages: Tensor | None) -> TrainingError:
        rank = self.processes.rank
        path = self.run_dir / f"bad-batch-{step:06d}{f'-process-{rank}' if rank else ''}.pt"
        save_batch(path, batch, advantages, {"step": step, "error": str(error)})
        return with_batch(error, path)
