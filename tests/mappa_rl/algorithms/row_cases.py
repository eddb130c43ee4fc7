"""Rows for the tests of the learning maths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from mappa_rl.algorithms import GRPO, RLOO, Algorithm, DrMAS, ReinforcePP, ReinforcePPBaseline, TokenBatch
from mappa_rl.algorithms.losses import KL
from mappa_rl.rollout.row import Row

KLS: list[KL] = ["none", "k1_reward", "k2_loss", "k3_loss"]
ALGORITHMS: list[type[Algorithm]] = [ReinforcePP, ReinforcePPBaseline, GRPO, RLOO, DrMAS]

_ROW = Row(
    prompt_ids=(1, 2),
    response_ids=(3,),
    logprobs=(-1.0,),
    reward=0.0,
    agent="solver_0",
    role="solver",
    status="ok",
    truncated=False,
    episode=0,
    group=0,
    turn=0,
    kind="algebra",
    outcome=0.0,
)


def make_row(reward: float = 0.0, tokens: int = 1, **fields: Any) -> Row:
    """Return a row with a response of so many tokens."""
    fields.setdefault("response_ids", tuple(3 + i % 5 for i in range(tokens)))
    fields.setdefault("logprobs", tuple(-0.5 - 0.25 * (i % 3) for i in range(len(fields["response_ids"]))))
    return replace(_ROW, reward=reward, **fields)


def team_rows() -> list[Row]:
    """Two tasks, three episodes each, two agents, the coder with one or two actions; some rows are not trainable."""
    rows = []
    for episode in range(6):
        kind = ("algebra", "counting")[episode // 3]
        shape: dict[str, Any] = {"episode": episode, "group": episode // 3, "kind": kind}
        rows.append(make_row(((episode * 7) % 10) / 10, 1 + episode % 4, agent="solver_0", turn=0, **shape))
        for call in range(1 + episode % 2):
            reward = ((episode * 3 + call * 4) % 11) / 10
            rows.append(make_row(reward, 2 + (episode + call) % 3, agent="coder_0", turn=1 + call, **shape))
    rows[3] = replace(rows[3], status="failed", reward=0.0)
    rows[7] = replace(rows[7], truncated=True, reward=1.0)
    return rows


def reference_for(batch: TokenBatch, seed: int = 0) -> Tensor:
    """Return reference log-probabilities near the sampling ones."""
    noise = torch.randn(batch.mask.shape, generator=torch.Generator().manual_seed(seed))
    return batch.old_logprobs + 0.3 * noise


def team_batch(rows: list[Row] | None = None, **fields: Any) -> TokenBatch:
    """Return a batch with a reference."""
    batch = TokenBatch.from_rows(team_rows() if rows is None else rows, **fields)
    return batch.with_reference(reference_for(batch))


@st.composite
def batches(draw: st.DrawFn) -> TokenBatch:
    """Batches of 2 tasks x 2 to 3 episodes x 2 agents with random lengths, rewards, statuses and references."""
    rows = []
    for group in range(2):
        for sample in range(draw(st.integers(2, 3))):
            for turn, agent in enumerate(("solver_0", "coder_0")):
                tokens = draw(st.integers(1, 4))
                rows.append(
                    make_row(
                        draw(st.integers(0, 10)) / 10,
                        tokens,
                        agent=agent,
                        turn=turn,
                        group=group,
                        episode=10 * group + sample,
                        status=draw(st.sampled_from(["ok", "ok", "ok", "failed", "skipped"])),
                        truncated=draw(st.sampled_from([False, False, False, True])),
                        logprobs=tuple(draw(st.floats(-8, 0, width=32)) for _ in range(tokens)),
                    )
                )
    return team_batch(rows)
