"""What a coach has cost, on disk, and the budget that it must not pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from mappa_envs.errors import BudgetError
from mappa_envs.judges.coach.files import append_line, read_lines
from mappa_envs.judges.coach.settings import Price
from mappa_envs.transcript import Cost

_CHARS_PER_TOKEN = 3.0
"""Few enough for code and most languages: an estimate must rather be too high."""


def add(one: Cost, other: Cost) -> Cost:
    """Return the sum of two costs."""
    return Cost(
        one.calls + other.calls,
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.money + other.money,
    )


def estimated_tokens(chars: int) -> int:
    """Return a number of tokens that texts of so many characters rarely pass."""
    return int(chars / _CHARS_PER_TOKEN) + 1


def money_for(price: Price | None, prompt_tokens: int, completion_tokens: int) -> float:
    """Return what tokens cost; 0 without a price."""
    if price is None:
        return 0.0
    return (price.prompt * prompt_tokens + price.completion * completion_tokens) / 1e6


class Ledger:
    """The sum of costs: of all processes that share its file, or of this object where it has none.

    Args:
        path: A JSONL file, one line per verdict that was paid for.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._read_to, self._total = path, 0, Cost()

    def add(self, cost: Cost, judge: str) -> None:
        """Write a cost down."""
        if self._path is None:
            self._total = add(self._total, cost)
        else:
            append_line(self._path, {"judge": judge, **asdict(cost)})

    def total(self) -> Cost:
        """Return what has been spent so far.

        Raises:
            JudgeError: If the file is damaged.
        """
        if self._path is not None and self._path.is_file():
            for read_to, record in read_lines(self._path, self._read_to):
                self._read_to = read_to
                self._total = add(self._total, Cost(**{k: v for k, v in record.items() if k != "judge"}))
        return self._total


class Budget:
    """Lets a call start only if it can be paid, whatever the calls under way will cost.

    Args:
        limit: Most money; None: no limit.
        ledger: What has been spent.
    """

    def __init__(self, limit: float | None, ledger: Ledger) -> None:
        self._limit, self._ledger = limit, ledger
        self._reserved: dict[object, float] = {}
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, most: float) -> AsyncIterator[None]:
        """Set money aside for a call; waits for calls under way where only their outcome can tell.

        Args:
            most: What the call costs at most.

        Raises:
            BudgetError: If it cannot be paid any more.
        """
        ticket = object()
        while self._limit is not None and self._spent() + sum(self._reserved.values()) + most > self._limit:
            if not self._reserved:
                raise self._error(most)
            self._freed.clear()
            await self._freed.wait()
        self._reserved[ticket] = most
        try:
            yield
        finally:
            del self._reserved[ticket]
            self._freed.set()

    def _spent(self) -> float:
        return self._ledger.total().money

    def _error(self, most: float) -> BudgetError:
        return BudgetError(
            "the coach's budget is used up",
            expected=f"at most {self._limit:g} in all",
            got=f"{self._spent():.4g} spent, and the next verdict may cost {most:.2g}",
            fix="raise the coach's budget and resume: verdicts that were paid for come from its cache",
        )
