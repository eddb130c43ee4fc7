from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from row_cases import ALGORITHMS, make_row, team_batch, team_rows
from torch import Tensor, nn

from mappa_rl.algorithms import Algorithm, GroupSizeError, Reduce, TokenBatch
from mappa_rl.algorithms.reduction import Key, Sums
from mappa_rl.rollout.row import Row


class TinyModel(nn.Module):
    """A recurrent language model of a vocabulary of 8."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.core, self.head = nn.Embedding(8, 6), nn.GRU(6, 6, batch_first=True), nn.Linear(6, 8)

    def logprobs(self, rows: Sequence[Row]) -> Tensor:
        width = max(len(row.response_ids) for row in rows)
        parts = []
        for row in rows:
            ids = torch.tensor([*row.prompt_ids, *row.response_ids])
            states, _ = self.core(self.embed(ids[None, :-1]))
            scores = self.head(states[0, len(row.prompt_ids) - 1 :]).log_softmax(-1)
            of_response = scores.gather(1, ids[len(row.prompt_ids) :, None])[:, 0]
            parts.append(nn.functional.pad(of_response, (0, width - len(of_response)), value=123.0))
        return torch.stack(parts)

    def gradient(self) -> Tensor:
        return torch.cat([p.grad.flatten() for p in self.parameters() if p.grad is not None])


def accumulate(model: TinyModel, algorithm: Algorithm, batch: TokenBatch, parts: Sequence[Sequence[int]]) -> float:
    """Add the gradient of a step that is cut into parts; return its loss."""
    advantages, total, loss = algorithm.advantages(batch), batch.total_tokens(), 0.0
    for part in parts:
        output = algorithm.loss(
            model.logprobs([batch.rows[i] for i in part]),
            batch.select(part),
            batch.take(advantages, part),
            total_tokens=total,
        )
        output.loss.backward()
        loss += output.loss.item()
    return loss


@pytest.mark.parametrize("kl", ["k1_reward", "k2_loss"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_the_gradient_does_not_depend_on_micro_batches(kind: type[Algorithm], kl: str) -> None:
    batch, algorithm = team_batch(), kind(kl=kl, kl_coef=0.1)
    everything = list(range(len(batch.rows)))
    ways = [[everything], [[i] for i in everything], [everything[::-1][:4], everything[::-1][4:]]]
    results = []
    for parts in ways:
        model = TinyModel()
        loss = accumulate(model, algorithm, batch, parts)
        results.append((loss, model.gradient()))
    for loss, gradient in results[1:]:
        assert loss == pytest.approx(results[0][0], rel=1e-4, abs=1e-6)
        assert torch.allclose(gradient, results[0][1], rtol=1e-4, atol=1e-6)
    assert results[0][1].abs().max() > 1e-3


def test_two_actions_of_2_and_8_tokens_weigh_by_their_tokens() -> None:
    # trl 3021 and its like: with a mean per micro-batch, cut into 1 + 1, the short action's tokens weigh 4 times more.
    class Plain(Algorithm):
        def advantages(self, batch: TokenBatch) -> Tensor:
            return batch.mask.float()

    batch = TokenBatch.from_rows([make_row(tokens=2), make_row(tokens=8)])
    algorithm = Plain(kl="none")
    for parts in ([[0, 1]], [[0], [1]]):
        current = batch.old_logprobs.clone().requires_grad_()
        for part in parts:
            output = algorithm.loss(
                batch.take(current, part), batch.select(part), batch.take(batch.mask.float(), part), total_tokens=10
            )
            output.loss.backward()
        assert current.grad is not None
        # Ratio 1 and advantage 1 on 10 tokens: -1/10 each.
        assert torch.allclose(current.grad[batch.mask], torch.full((10,), -0.1))


def test_metrics_are_sums_that_add_up_over_parts() -> None:
    batch, algorithm = team_batch(), ALGORITHMS[0]()
    advantages, current = algorithm.advantages(batch), batch.old_logprobs + 0.3
    whole = algorithm.loss(current, batch, advantages, total_tokens=batch.tokens).metrics
    summed = dict.fromkeys(whole, 0.0)
    for i in range(len(batch.rows)):
        part = algorithm.loss(
            batch.take(current, [i]), batch.select([i]), batch.take(advantages, [i]), total_tokens=batch.tokens
        )
        summed = {key: summed[key] + part.metrics[key] for key in whole}
    assert summed == pytest.approx(whole, rel=1e-5)
    assert whole["tokens"] == batch.tokens and whole["clipped"] > 0
    # log p - log p_old = 0.3 everywhere: k3(p_old, p) = e^0.3 - 1 - 0.3.
    assert whole["kl_old"] / whole["tokens"] == pytest.approx(0.0498588, rel=1e-4)


class ThreadReduce:
    """A sum over threads that stand for processes."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size)
        self._slots: list[Sums] = [{} for _ in range(size)]

    def of(self, rank: int) -> Reduce:
        def reduce(sums: Sums) -> Sums:
            self._slots[rank] = dict(sums)
            self._barrier.wait(20)
            total: dict[Key, tuple[float, ...]] = {}
            for one in self._slots:
                for key, values in one.items():
                    total[key] = tuple(a + b for a, b in zip(total.get(key, (0.0,) * len(values)), values, strict=True))
            self._barrier.wait(20)
            return total

        return reduce


def halves() -> list[list[int]]:
    """Row indexes of two processes: whole episodes, groups torn apart, unequal sizes."""
    first = [i for i, row in enumerate(team_rows()) if row.episode in (0, 4)]
    return [first, [i for i in range(len(team_rows())) if i not in first]]


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_the_gradient_does_not_depend_on_the_number_of_processes(kind: type[Algorithm]) -> None:
    batch, algorithm = team_batch(), kind(kl="k1_reward", kl_coef=0.1)
    alone = TinyModel()
    accumulate(alone, algorithm, batch, [list(range(len(batch.rows)))])

    shared, gradients = ThreadReduce(2), [torch.empty(0)] * 2

    def work(rank: int) -> None:
        part = replace(batch.select(halves()[rank]), reduce=shared.of(rank))
        model = models[rank]
        accumulate(model, algorithm, part, [list(range(len(part.rows)))])
        gradients[rank] = model.gradient()

    models = [TinyModel(), TinyModel()]
    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert torch.allclose(gradients[0] + gradients[1], alone.gradient(), rtol=1e-4, atol=1e-6)


def test_over_real_processes_the_advantages_are_those_of_one_process(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            from dataclasses import replace
            import torch, torch.distributed as dist
            from mappa_rl.algorithms import over_processes
            from row_cases import ALGORITHMS, team_batch
            from test_gradient_invariance import halves

            rank, folder = int(sys.argv[1]), sys.argv[2]
            dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
            part = replace(team_batch().select(halves()[rank]), reduce=over_processes())
            results = [kind(kl="k1_reward", kl_coef=0.1).advantages(part) for kind in ALGORITHMS]
            torch.save((results, part.total_tokens()), f"{folder}/{rank}.pt")
            dist.destroy_process_group()
            """
        )
    )
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path)], env=environment, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    batch = team_batch()
    for rank, indices in enumerate(halves()):
        results, total = torch.load(tmp_path / f"{rank}.pt")
        assert total == batch.tokens
        for kind, got in zip(ALGORITHMS, results, strict=True):
            expected = batch.take(kind(kl="k1_reward", kl_coef=0.1).advantages(batch), indices)
            assert torch.allclose(got, expected, atol=1e-5)


def test_a_group_of_one_here_is_fine_if_its_other_episode_is_in_another_process() -> None:
    rows = [make_row(0.2, episode=0), make_row(0.8, episode=1)]
    algorithm, shared = ALGORITHMS[2](kl="none"), ThreadReduce(2)
    results: list[Tensor | GroupSizeError] = [torch.empty(0)] * 2

    def work(rank: int) -> None:
        try:
            results[rank] = algorithm.advantages(TokenBatch.from_rows([rows[rank]], reduce=shared.of(rank)))
        except GroupSizeError as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    numbers = [float(result) for result in results if isinstance(result, Tensor)]
    assert len(numbers) == 2 and numbers[0] == pytest.approx(-numbers[1]) and numbers[1] > 0.5
