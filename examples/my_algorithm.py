"""An algorithm of your own, and one training step with it: each agent against its own best action on the task."""

from pathlib import Path

from torch import Tensor

from mappa_rl.algorithms import Algorithm, TokenBatch
from mappa_rl.algorithms.advantages import scope_keys, spread
from mappa_rl.config import TrainConfig, load_config
from mappa_rl.trainer import Trainer


class BestOfGroup(Algorithm):
    """Elsewhere: `mappa train algorithm.name=my_algorithm:BestOfGroup algorithm.kwargs.margin=0.2`."""

    margin: float = 0.1

    def advantages(self, batch: TokenBatch) -> Tensor:
        """Return rewards less the best of the agent's rewards on the task, plus a margin."""
        rewards, keys = self.row_rewards(batch), scope_keys(batch.rows, "group_agent")
        best = [max(r for r, k in zip(rewards.tolist(), keys, strict=True) if k == key) for key in keys]
        return self.finish(spread(rewards - rewards.new_tensor(best) + self.margin, batch.mask), batch)


if __name__ == "__main__":
    small = ["steps=1", "rollout.tasks_per_step=2", "eval.tasks=0", "algorithm.name=__main__:BestOfGroup"]
    run = Trainer(load_config(TrainConfig, None, small), Path("my_run")).run()
    print((run.run_dir / "metrics.jsonl").read_text())
