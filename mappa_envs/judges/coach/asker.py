"""Asking for one score: tries, corrections, one deadline, one budget, one cache."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from envs_registry.extras import import_extra
from mappa_envs import background
from mappa_envs.judges.coach.cache import ReplyCache, content_key
from mappa_envs.judges.coach.endpoint import Answer, Endpoint, HttpEndpoint, RecordedEndpoint
from mappa_envs.judges.coach.parser import Reading, parse_score
from mappa_envs.judges.coach.prompt import load_prompt
from mappa_envs.judges.coach.render import ReplyForm, head_and_tail
from mappa_envs.judges.coach.settings import CoachSettings
from mappa_envs.judges.coach.spending import Budget, Ledger, add, estimated_tokens, money_for
from mappa_envs.judges.coach.wire import Dialect, Refused, Reply, Retry, Stop, read_answer
from mappa_envs.thoughts import visible_text
from mappa_envs.transcript import Cost, Message

Chat = Callable[[ReplyForm], list[Message]]
"""Renders one request for a form of reply."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 20.0
_SHOWN_REPLY = 4000


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking for one score came to."""

    reading: Reading
    cost: Cost


class _UnusableError(Exception):
    """No score can be had for this request."""


class _TransientError(Exception):
    def __init__(self, retry: Retry) -> None:
        super().__init__(retry.reason)
        self.after = retry.after


class _Bill:
    """The calls of one verdict."""

    def __init__(self) -> None:
        self.cost = Cost()
        self.last_fault = "nothing came back"


class Asker:
    """Asks one endpoint, on one event loop.

    Args:
        settings: How.

    Raises:
        ConfigError: If the endpoint's key or a library is missing.
        JudgeError: If the recording to answer from is damaged.
    """

    def __init__(self, settings: CoachSettings) -> None:
        self._tenacity = import_extra("tenacity", "coach", "the coach")
        self.settings, self._prompt = settings, load_prompt(settings.prompt)
        replay, folder = settings.replay, settings.folder
        self._endpoint: Endpoint = RecordedEndpoint(replay) if replay is not None else HttpEndpoint(settings)
        self._cache = ReplyCache(folder / "cache") if folder is not None and settings.cache else None
        self._ledger = Ledger(folder / "ledger.jsonl" if folder is not None else None)
        self._budget = Budget(settings.budget, self._ledger)
        self._dialect = Dialect(settings)
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._under_way: dict[str, asyncio.Task[Asked]] = {}
        self._random = random.Random()

    async def ask(self, chat: Chat) -> Asked:
        """Return the score that the coach gives for a request, or why there is none.

        Raises:
            BudgetError: If the budget or the account is used up.
            ConfigError: If the endpoint refuses every request: wrong key, model or URL.
        """
        if self._cache is None:
            return await self._in_a_slot(chat, None)
        key = self._key(chat)
        kept = self._cache.get(key)
        if kept is not None and (reading := parse_score(kept)).score is not None:
            return Asked(reading, Cost())
        # Equal requests at the same time get one answer, as they would one after the other.
        first = key not in self._under_way
        if first:
            task = asyncio.ensure_future(self._in_a_slot(chat, key))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        asked = await asyncio.shield(self._under_way[key])
        return asked if first else Asked(asked.reading, Cost())

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _key(self, chat: Chat) -> str:
        """Return the hash of what decides the answer; limits and retries do not."""
        s = self.settings
        asked = [s.base_url, s.model, s.structured, s.temperature, s.max_tokens, s.params, s.corrections]
        return content_key([*asked, self._prompt.version, chat("json")])

    async def _in_a_slot(self, chat: Chat, key: str | None) -> Asked:
        async with self._slots, self._budget.reserve(self._most(chat)):
            bill = _Bill()
            try:
                async with asyncio.timeout(self.settings.deadline):
                    reading, reply = await self._dialogue(chat, bill)
            except TimeoutError:
                told = f"no usable reply within {self.settings.deadline:g} s; last: {bill.last_fault}"
                return Asked(Reading(None, told), bill.cost)
            except _UnusableError as error:
                return Asked(Reading(None, str(error)), bill.cost)
            finally:
                if bill.cost.calls:
                    self._ledger.add(bill.cost, self.settings.model)
            if key is not None and self._cache is not None:
                # Another process may have been faster: all must see one reply.
                kept = parse_score(self._cache.put(key, reply))
                reading = kept if kept.score is not None else reading
            return Asked(reading, bill.cost)

    async def _dialogue(self, chat: Chat, bill: _Bill) -> tuple[Reading, str]:
        """Ask, and ask again for a usable reply where there is none."""
        corrections: list[Message] = []
        for _ in range(self.settings.corrections + 1):
            reply = await self._completion(chat, corrections, bill)
            reading = Reading(None, "it was cut off at max_tokens") if reply.cut else parse_score(reply.text)
            if reading.score is not None:
                return reading, reply.text
            bill.last_fault = reading.reason
            said = head_and_tail(visible_text(reply.text).strip(), _SHOWN_REPLY)
            form = self._prompt.reply_json if self._dialect.form == "json" else self._prompt.reply_text
            corrections = [
                {"role": "assistant", "content": said or "(nothing)"},
                {"role": "user", "content": self._prompt.retry.substitute(problem=reading.reason, reply=form)},
            ]
        raise _UnusableError(f"unusable reply: {reading.reason}")

    async def _completion(self, chat: Chat, corrections: Sequence[Message], bill: _Bill) -> Reply:
        """Return a completion, in as many tries as it may take."""
        retrying = self._tenacity.AsyncRetrying(
            retry=self._tenacity.retry_if_exception_type(_TransientError),
            stop=self._tenacity.stop_after_attempt(self.settings.tries),
            wait=self._wait,
            reraise=True,
        )
        try:
            reply: Reply = await retrying(self._once, chat, corrections, bill)
        except _TransientError as error:
            raise _UnusableError(f"{error} (after {self.settings.tries} tries)") from error
        return reply

    def _wait(self, state: Any) -> float:
        if self.settings.replay is not None:
            return 0.0
        fault = state.outcome.exception()
        longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2**state.attempt_number)
        # Jitter from a generator of its own: the global one belongs to the user.
        return max(self._random.uniform(0, longest), fault.after or 0.0)

    async def _once(self, chat: Chat, corrections: Sequence[Message], bill: _Bill) -> Reply:
        while True:
            body = self._dialect.body([*chat(self._dialect.form), *corrections])
            answer = await self._post(body, bill)
            if not self._dialect.adapt(body, answer):
                break
        match read_answer(answer, self.settings, answered=self._dialect.answered):
            case Stop(error):
                raise error
            case Refused(reason):
                raise _UnusableError(reason)
            case Retry() as retry:
                bill.last_fault = retry.reason
                if retry.after is not None and retry.after > self.settings.deadline:
                    raise _UnusableError(f"{retry.reason} (to be asked again after {retry.after:g} s)")
                raise _TransientError(retry)
            case Reply() as reply:
                self._dialect.answered = True
                self._charge(bill, body, reply)
                return reply

    # Money -------------------------------------------------------------------------------------------------------

    async def _post(self, body: dict[str, Any], bill: _Bill) -> Answer:
        gave_up = Cost(calls=1, money=self._dearest(body["messages"]))
        try:
            answer = await self._endpoint.post(body)
        except asyncio.CancelledError:
            bill.cost = add(bill.cost, gave_up)
            raise
        # An answer that nobody waited for may have been paid for in full.
        bill.cost = add(bill.cost, gave_up if answer.timed_out else Cost(calls=1))
        return answer

    def _charge(self, bill: _Bill, body: dict[str, Any], reply: Reply) -> None:
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        if prompt is None:
            prompt = estimated_tokens(_chars(body["messages"]))
        if completion is None:
            completion = estimated_tokens(len(reply.text))
        money = money_for(self.settings.known_price, prompt, completion)
        bill.cost = add(bill.cost, Cost(0, prompt, completion, money))

    def _dearest(self, messages: Sequence[Message]) -> float:
        """Return the most that one call costs."""
        tokens = estimated_tokens(_chars(messages))
        return money_for(self.settings.known_price, tokens, self.settings.max_tokens)

    def _most(self, chat: Chat) -> float:
        if self.settings.budget is None:
            return 0.0
        return (self.settings.corrections + 1) * self._dearest(chat("json"))


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in messages)


_askers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Asker]] = WeakKeyDictionary()


def shared_asker(settings: CoachSettings) -> Asker:
    """Return the asker for these settings on the running loop: all environments of a process share one.

    Concurrency, budget and cache are those of the process, not of each environment.

    Raises:
        ConfigError: If the endpoint's key or a library is missing.
    """
    mine = _askers.setdefault(asyncio.get_running_loop(), {})
    key = (settings.model_dump_json(), None if settings.replay is not None else settings.key())
    if key not in mine:
        mine[key] = Asker(settings)
    return mine[key]


async def close_askers() -> None:
    """Close the connections of every asker of the running loop; the next request opens new ones."""
    mine = _askers.pop(asyncio.get_running_loop(), {})
    for asker in mine.values():
        await asker.close()


@atexit.register
def _at_exit() -> None:
    if any(_askers.values()):
        with contextlib.suppress(TimeoutError):
            background.submit(close_askers()).result(timeout=5)
