"""From rewards to advantages: pure functions on padded `[rows, tokens]` tensors and their rows.

Statistics are computed in float64 on the CPU (MPS has no float64) from float32 inputs. That makes sums of
equal values exact, so zero variance gives exactly 0. Masked-out cells are never read, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import torch
from torch import Tensor

from mappa_rl.algorithms.reduction import Reduce, one_process
from mappa_rl.rollout.row import Row

VARIANCE_FLOOR = 1e-8

GroupScope = Literal["group", "group_agent", "group_agent_call"]
Scope = Literal["agent", "team", "agent_kind", "group", "group_agent", "group_agent_call"]


def scope_keys(rows: Sequence[Row], scope: Scope) -> list[Hashable]:
    """Return, for each row, the key of the rows that it shares statistics with.

    Args:
        rows: All rows of whole episodes, excluded ones too (they count in the numbering of calls).
        scope: `agent`: each agent alone. `team`: all together. `agent_kind`: each agent on each task kind.
            `group`: all actions on the same task. `group_agent`: each agent's actions on the same task.
            `group_agent_call`: each agent's n-th actions on the same task (of one episode each), the nearest
            to "the same prompt".
    """
    match scope:
        case "agent":
            return [row.agent for row in rows]
        case "team":
            return ["team" for _ in rows]
        case "agent_kind":
            return [(row.agent, row.kind) for row in rows]
        case "group":
            return [row.group for row in rows]
        case "group_agent":
            return [(row.group, row.agent) for row in rows]
        case "group_agent_call":
            return [(row.group, row.agent, call) for row, call in zip(rows, _calls(rows), strict=True)]


def token_rewards(rewards: Tensor, mask: Tensor, penalty: Tensor | None = None) -> Tensor:
    """Place each row's reward on its last mask=1 token and subtract the per-token penalty.

    Args:
        rewards: `[rows]`.
        mask: `[rows, tokens]` bool. Rows without a token get nothing.
        penalty: `[rows, tokens]`, read where `mask`; e.g. beta times the k1 KL.

    Returns:
        `[rows, tokens]` float64 on the CPU, 0 where not `mask`.
    """
    mask = mask.cpu()
    base = torch.zeros(mask.shape, dtype=torch.float64)
    if penalty is not None:
        base[mask] = -penalty.detach().cpu().double()[mask]
    later = mask.flip(1).cumsum(1).flip(1)
    last = mask & (later == 1)
    base[last] += rewards.detach().cpu().double()[mask.any(1)]
    return base


def returns_to_go(rewards: Tensor, mask: Tensor, gamma: float = 1.0) -> Tensor:
    """Return `G_t = r_t + gamma * G_next` over mask=1 tokens only.

    A mask=0 token neither pays, nor resets the sum, nor discounts: gamma ticks on sampled tokens.

    Args:
        rewards: `[rows, tokens]`, read where `mask`.
        mask: `[rows, tokens]` bool.
        gamma: Discount per sampled token, 0 to 1.

    Returns:
        `[rows, tokens]` float32 on the CPU, 0 where not `mask`.
    """
    mask = mask.cpu()
    clean = torch.where(mask, rewards.detach().cpu().double(), 0.0)
    if gamma == 1.0:
        result = clean.flip(1).cumsum(1).flip(1)
    else:
        result, running = torch.zeros_like(clean), torch.zeros(len(clean), dtype=torch.float64)
        for t in reversed(range(clean.shape[1])):
            running = torch.where(mask[:, t], clean[:, t] + gamma * running, running)
            result[:, t] = running
    return torch.where(mask, result, 0.0).float()


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """Return generalised advantages `A_t = sum_k (gamma lam)^k (r_{t+k} + gamma V_{t+k+1} - V_{t+k})`.

    Sampled tokens only, as in `returns_to_go`; the value after a row's last token is 0 (arXiv 1506.02438, eq. 16).

    Args:
        rewards: `[rows, tokens]`, read where `mask`.
        values: `[rows, tokens]` of the states before each token, read where `mask`.
        mask: `[rows, tokens]` bool.
        gamma: Discount per sampled token, 0 to 1.
        lam: Weight of later errors, 0 to 1.

    Returns:
        `[rows, tokens]` float32 on the CPU, 0 where not `mask`.
    """
    mask = mask.cpu()
    clean = torch.where(mask, rewards.detach().cpu().double(), 0.0)
    value = torch.where(mask, values.detach().cpu().double(), 0.0)
    result = torch.zeros_like(clean)
    running, following = torch.zeros(len(clean), dtype=torch.float64), torch.zeros(len(clean), dtype=torch.float64)
    for t in reversed(range(clean.shape[1])):
        error = clean[:, t] + gamma * following - value[:, t]
        running = torch.where(mask[:, t], error + gamma * lam * running, running)
        following = torch.where(mask[:, t], value[:, t], following)
        result[:, t] = running
    return torch.where(mask, result, 0.0).float()


def normalise(values: Tensor, mask: Tensor, keys: Sequence[Hashable], reduce: Reduce = one_process) -> Tensor:
    """Subtract the mean and divide by the standard deviation of the masked tokens that share a key.

    `(v - mean) / sqrt(max(variance, 1e-8))` with the population variance, once, over all processes
    (REINFORCE++, arXiv 2501.03262, global advantage normalisation; here "global" is the key).

    Args:
        values: `[rows, tokens]`, read where `mask`.
        mask: `[rows, tokens]` bool.
        keys: One per row, e.g. of `scope_keys`.
        reduce: Sums over processes; called twice.

    Returns:
        `[rows, tokens]` float32 on the CPU, 0 where not `mask` and where all values of a key are equal.
    """
    mask = mask.cpu()
    names, of_row = number_keys(keys)
    of_token = of_row[:, None].expand(mask.shape)[mask]
    flat = values.detach().cpu().float()[mask].double()
    count, total = totals(names, [torch.ones_like(flat), flat], of_token, reduce)
    centred = flat - (total / count.clamp(min=1))[of_token]
    (squares,) = totals(names, [centred.square()], of_token, reduce)
    variance = (squares / count.clamp(min=1)).clamp(min=VARIANCE_FLOOR)
    result = torch.zeros(mask.shape, dtype=torch.float32)
    result[mask] = (centred * variance.rsqrt()[of_token]).float()
    return result


def spread(values: Tensor, mask: Tensor) -> Tensor:
    """Give each row's value `[rows]` to all its mask=1 tokens: `[rows, tokens]` float32 on the CPU."""
    mask = mask.cpu()
    return torch.where(mask, values.detach().cpu().float()[:, None], 0.0)


def number_keys(keys: Sequence[Hashable]) -> tuple[list[Hashable], Tensor]:
    """Return the distinct keys in order of appearance and, per row, the index of its key."""
    numbers: dict[Hashable, int] = {}
    index = [numbers.setdefault(key, len(numbers)) for key in keys]
    return list(numbers), torch.tensor(index, dtype=torch.long)


def totals(names: list[Hashable], values: list[Tensor], index: Tensor, reduce: Reduce) -> Tensor:
    """Sum `[items]` float64 tensors per key over all processes.

    Args:
        names: The distinct keys of this process.
        values: What to sum.
        index: `[items]`, each item's key as its place in `names`.
        reduce: Sums over processes; called once.

    Returns:
        `[len(values), len(names)]`.
    """
    local = torch.zeros(len(names), len(values), dtype=torch.float64)
    local.index_add_(0, index, torch.stack(values, dim=1))
    sums = reduce({name: tuple(row) for name, row in zip(names, local.tolist(), strict=True)})
    if not names:
        return local.T
    return torch.tensor([sums[name] for name in names], dtype=torch.float64).T


def _calls(rows: Sequence[Row]) -> list[int]:
    """Return, for each row, how many earlier actions its agent took in its episode."""
    turns: dict[Hashable, list[int]] = {}
    for row in rows:
        turns.setdefault((row.episode, row.agent), []).append(row.turn)
    ordered = {key: sorted(set(values)) for key, values in turns.items()}
    return [ordered[row.episode, row.agent].index(row.turn) for row in rows]
