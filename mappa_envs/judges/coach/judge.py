"""`CoachJudge`: a language model behind an HTTP endpoint scores every action."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from envs_registry.extras import import_extra
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.coach.asker import Asker, shared_asker
from mappa_envs.judges.coach.prompt import load_prompt
from mappa_envs.judges.coach.render import ReplyForm, head_and_tail, render_request
from mappa_envs.judges.coach.settings import coach_settings
from mappa_envs.transcript import Message, Verdict

_LONGEST_REASON = 2000


class CoachJudge(Judge):
    """Asks any OpenAI-compatible endpoint (MAPPA, section 3: the coach).

    A request that gets no usable score within its deadline is `failed`, with the reason; what would fail for every
    request (no key, a refused key, an unknown model, no money) raises at once. All coaches of a process with equal
    settings share their connections, their concurrency limit, their cache and their budget.

    Args:
        **settings: Fields of `CoachSettings`; `model` is needed.

    Raises:
        ConfigError: If a setting is wrong, the key is not set, or the extra `coach` is not installed.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = coach_settings(settings)
        self._prompt = load_prompt(self.settings.prompt)
        self.id = f"coach/{self.settings.model}/{self._prompt.version}"
        import_extra("tenacity", "coach", "the coach")
        if self.settings.replay is None:
            import_extra("openai", "coach", "the coach")
            self.settings.key()

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in order.

        Raises:
            BudgetError: If the budget or the account is used up. Replies that were under way are waited for and
                kept, so that nothing that was paid for is lost.
            ConfigError: If the endpoint refuses the coach altogether.
        """
        asker = shared_asker(self.settings)
        made = await asyncio.gather(*(self._verdict(asker, request) for request in requests), return_exceptions=True)
        verdicts: list[Verdict] = []
        for verdict in made:
            if isinstance(verdict, BaseException):
                raise verdict
            verdicts.append(verdict)
        return verdicts

    async def _verdict(self, asker: Asker, request: JudgeRequest) -> Verdict:
        @cache
        def chat(form: ReplyForm) -> list[Message]:
            return render_request(request, self._prompt, form=form, limits=self.settings.limits)

        asked = await asker.ask(chat)
        reason = head_and_tail(asked.reading.reason, _LONGEST_REASON)
        if asked.reading.score is None:
            return Verdict.failed(reason, self.id, asked.cost)
        return Verdict.ok(asked.reading.score, reason, self.id, asked.cost)
