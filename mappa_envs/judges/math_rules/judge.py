"""`MathRules`: from the facts of a turn to its verdict."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from mappa_envs.code_blocks import python_code
from mappa_envs.errors import TaskError
from mappa_envs.flow import picked
from mappa_envs.grading.answers import grade
from mappa_envs.grading.extract import Extraction, boxed_contents, extract_answer
from mappa_envs.grading.latex import tidy
from mappa_envs.grading.policy import DEFAULT_POLICY, GradingPolicy
from mappa_envs.grading.reading import Quantity, read
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.criteria import Finding, criteria_from, verdict_from
from mappa_envs.judges.math_rules.plan import plan_expression, plan_value, read_plan
from mappa_envs.judges.math_rules.program import parse_quietly, typed_in
from mappa_envs.judges.math_rules.rules import RULES
from mappa_envs.judges.math_rules.values import last_output, numbers_in, printed_value, same_number, uses_numbers
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.thoughts import visible_text
from mappa_envs.transcript import Turn, Verdict

MAX_ANSWER_CHARS = 20_000
"""A longer final turn (without `<think>` parts) is not short."""
_MAX_BOXES = 20
_MIN_COPY_CHARS = 40
_WORDS = re.compile(r"[^\W\d_]{2,}\s+[^\W\d_]{2,}")

Accepted = tuple[str, ...] | None
"""The accepted answers where the judge is shown them."""


class MathRules(Judge):
    """Scores the duties `solve`, `compute`, `answer`, `work`, `check` and `route` from facts; `rules.RULES` lists them.

    With ground truth (the environment's `ground_truth` setting) half of each role's points are for being right;
    without it the score is about form and agreement only. No text of an agent is ever read for a score.

    Args:
        policy: How answers are compared; the environment's own.
    """

    id = "math-rules-3"

    def __init__(self, policy: GradingPolicy = DEFAULT_POLICY) -> None:
        self.policy = policy

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Score each request by its duty; a duty that this judge does not know is a failed verdict."""
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(self, request: JudgeRequest) -> Verdict:
        accepted = request.truth.answers if isinstance(request.truth, MathTask) else None
        duty = _duty(request)
        match duty:
            case "solve":
                findings = await self._solve(request, accepted)
            case "compute":
                findings = await self._compute(request, accepted)
            case "answer":
                findings = await self._answer(request, accepted)
            case "check":
                findings = await self._check(request, accepted)
            case "route":
                findings = await self._route(request, accepted)
            case _:
                return Verdict.failed(f"{self.id} knows no duty {duty!r} ({', '.join((*RULES, 'work'))})", self.id)
        return verdict_from(criteria_from(RULES[duty], findings), self.id)

    # One duty each -----------------------------------------------------------------------------------------------

    async def _solve(self, request: JudgeRequest, accepted: Accepted) -> dict[str, Finding]:
        plan = read_plan(request.action, request.task_prompt)
        given = numbers_in(request.task_prompt, words=True)
        value = None if plan.value is None else str(plan.value)
        worked = plan.value is not None and not plan.typed_in
        on_topic = plan.expression is not None and not plan.typed_in and uses_numbers(plan.numbers, given)
        return {
            "line": Finding(plan.expression is not None),
            "evaluates": Finding(value is not None),
            "worked": Finding(worked),
            "numbers": Finding(on_topic if given else None),
            "equations": Finding(all(plan.equations) if plan.expression and plan.equations else None),
            "stated": Finding(plan.stated),
            "right": await self._right(value, accepted, earned=worked, lost="the value was typed in"),
        }

    async def _compute(self, request: JudgeRequest, accepted: Accepted) -> dict[str, Finding]:
        tool = request.tools[-1] if request.tools else None
        code = tool.input if tool is not None and tool.status != "missing" else python_code(request.action)
        ran = tool is not None and tool.status == "ok"
        printed = printed_value(tool)
        before = [t.input for turn in request.earlier if turn.agent == request.agent for t in turn.tools]
        typed = typed_in(code, printed, request.task_prompt, before=before) if code and printed is not None else None
        computed = printed is not None and typed is False
        lost = "the value was typed in" if typed else "the program is too long or unusual to be looked into"
        right = await self._right(printed, accepted, earned=computed, lost=lost)
        plans = [plan_value(turn.action) for turn in request.earlier if plan_expression(turn.action) is not None]
        plan = plans[-1] if plans else None
        follows: bool | None = None
        if plan is not None:
            plan_right = await self._agrees(plan, accepted) if accepted is not None else None
            # A coder who repairs a wrong plan is not blamed for leaving it; one who runs a wrong plan faithfully keeps
            # this point, since the fault is the solver's.
            follows = None if right.met else computed and await self._same(printed, plan)
            right = _blame(right, plan_right, follows, repaired="repaired a wrong plan", dropped="dropped a right plan")
        return {
            "block": Finding(code is not None),
            "valid": Finding(ran or (code is not None and parse_quietly(code) is not None)),
            "ran": Finding(ran),
            "printed": Finding(printed is not None),
            "computed": Finding(computed, "" if computed or printed is None else lost),
            "follows": Finding(follows),
            "right": right,
        }

    async def _answer(self, request: JudgeRequest, accepted: Accepted) -> dict[str, Finding]:
        found = extract_answer(request.action, policy=self.policy)
        boxed = found.text if found.boxed and found.text else None
        hedged = boxed is not None and self._hedges(request.action, found)
        several = "several different boxed answers"
        right = await self._right(boxed, accepted, earned=not hedged, lost=several)
        given = _given_result(request)
        given_right = await self._agrees(given, accepted) if given is not None and accepted is not None else None
        kept: bool | None = None
        if given is not None:
            if given_right is not False:
                kept = boxed is not None and not hedged and await self._same(boxed, given)
            same = kept if given_right is not False else boxed is not None and await self._same(boxed, given)
            right = _blame(
                right, given_right, same, repaired="repaired a wrong result", dropped="dropped a right result"
            )
        size = len(visible_text(request.action))
        return {
            "boxed": Finding(boxed is not None),
            "single": Finding(boxed is not None and found.count == 1),
            "short": Finding(boxed is not None and size <= MAX_ANSWER_CHARS and len(boxed) <= self.policy.max_chars),
            "own": Finding(boxed is not None and not _is_copy(request) if request.earlier else None),
            "kept": Finding(kept, several if hedged and kept is False else ""),
            "right": right,
        }

    async def _check(self, request: JudgeRequest, accepted: Accepted) -> dict[str, Finding]:
        told = bool(_WORDS.search(visible_text(request.action))) and not _is_copy(request)
        seen = numbers_in("\n".join(message["content"] for message in request.messages[1:]))
        right = await self._given_right(request, accepted)
        return {
            "told": Finding(told),
            "pointed": Finding(
                told and not seen.isdisjoint(numbers_in(visible_text(request.action))) if seen else None
            ),
            "right": Finding(None if right is None else not right),
        }

    async def _route(self, request: JudgeRequest, accepted: Accepted) -> dict[str, Finding]:
        name = picked(request.action, list(request.choices))
        others = [turn for turn in request.earlier if turn.agent != request.agent]
        failed = bool(others) and any(tool.status != "ok" for tool in others[-1].tools)
        # Where somebody is there to compute it, a plan is no result yet.
        planned = "compute" in request.choices.values() and not any(turn.tools for turn in request.earlier)
        right = False if planned else await self._given_right(request, accepted)
        timed = None if right is None or name is None else (request.choices[name] == "answer") == right
        return {
            "named": Finding(name is not None),
            "fresh": Finding(name is not None and (failed or not others or others[-1].role != name)),
            "right": Finding(False if name is None else timed),
        }

    async def _given_right(self, request: JudgeRequest, accepted: Accepted) -> bool | None:
        """Tell whether the agent was given a right result; None when nobody can say."""
        given = _given_result(request)
        if given is None:
            return None if _results_differ(request) else False
        return None if accepted is None else await self._agrees(given, accepted)

    # Comparing ---------------------------------------------------------------------------------------------------

    async def _right(self, value: str | None, accepted: Accepted, *, earned: bool, lost: str) -> Finding:
        """Compare a value with the accepted answers; only one that was earned can be right."""
        if accepted is None:
            return Finding(None)
        if value is None:
            return Finding(False)
        if not earned:
            return Finding(False, lost)
        verdict = await self._verdict(value, accepted)
        if verdict != "undecided":
            return Finding(verdict == "correct")
        for answer in accepted:
            if await self._verdict(answer, accepted) == "correct":
                # The fault is the value's: leaving the criterion out would pay for what cannot be compared.
                return Finding(False, "it could not be compared with the accepted answer in time")
        return Finding(None)

    async def _agrees(self, value: str, accepted: Sequence[str]) -> bool | None:
        """Compare a bare value; None when it cannot be decided."""
        verdict = await self._verdict(value, accepted)
        return None if verdict == "undecided" else verdict == "correct"

    async def _same(self, value: str | None, other: str) -> bool | None:
        """Compare two results of agents, up to the precision of floats."""
        if value is None:
            return False
        same = same_number(value, other)
        return same if same is not None else await self._agrees(value, [other])

    async def _verdict(self, value: str, accepted: Sequence[str]) -> str:
        try:
            return (await grade(f"\\boxed{{{value}}}", accepted, policy=self.policy)).verdict
        except TaskError:
            # What is accepted may be another agent's output here, and need not be mathematics.
            return "undecided"

    def _hedges(self, action: str, found: Extraction) -> bool:
        contents = [content for content in boxed_contents(action) if content]
        if found.several or len(contents) > _MAX_BOXES:
            return True
        return len({self._plain(content) for content in contents}) > 1

    def _plain(self, content: str) -> object:
        tidied = tidy(content[: self.policy.max_chars])
        answer = read(tidied)
        return answer.value if isinstance(answer, Quantity) else tidied


def _blame(right: Finding, given_right: bool | None, same: bool | None, *, repaired: str, dropped: str) -> Finding:
    """Say what became of the upstream result, where ground truth tells."""
    if right.note or right.met is None or given_right is None:
        return right
    if right.met:
        return right if given_right else Finding(True, repaired)
    if given_right:
        return right if same else Finding(False, dropped)
    return Finding(False, "repeated a wrong result") if same else right


def _duty(request: JudgeRequest) -> str:
    """Return the duty whose criteria this turn is scored by."""
    if request.duty == "work":
        return "compute" if any(tool.status != "missing" for tool in request.tools) else "answer"
    if request.duty == "check" and any(boxed_contents(visible_text(request.action))):
        return "answer"
    return request.duty


def _given_result(request: JudgeRequest) -> str | None:
    """Return the result that the agent was given: what code printed, else the plans or answers that it saw.

    Results of several agents count only where they agree.
    """
    results = _results(request)
    return (
        results[0]
        if results and all(same_number(results[0], other) or results[0] == other for other in results)
        else None
    )


def _results_differ(request: JudgeRequest) -> bool:
    return _given_result(request) is None and len(_results(request)) > 1


def _results(request: JudgeRequest) -> list[str]:
    ran = {turn.agent: turn for turn in request.earlier if any(tool.status != "missing" for tool in turn.tools)}
    if not ran:
        return list(_results_seen(request))
    return [value for turn in ran.values() if (value := last_output([turn])) is not None]


def _results_seen(request: JudgeRequest) -> Iterator[str]:
    seen = "\n".join(message["content"] for message in request.messages)
    latest: dict[str, Turn] = {turn.agent: turn for turn in request.earlier if turn.agent != request.agent}
    for turn in latest.values():
        if turn.action.strip() and turn.action.strip() in seen:
            boxes = boxed_contents(turn.action)
            result = boxes[-1] if boxes else plan_value(turn.action)
            if result:
                yield result


def _is_copy(request: JudgeRequest) -> bool:
    """Whether the action is one text that the agent saw, give or take spaces and a tenth of its length."""
    action = " ".join(visible_text(request.action).split())
    for turn in request.earlier:
        for text in (turn.action, visible_text(turn.action), *(tool.output for tool in turn.tools)):
            copied = " ".join(text.split())
            if copied == action or (len(copied) >= max(_MIN_COPY_CHARS, 0.9 * len(action)) and copied in action):
                return True
    return False
