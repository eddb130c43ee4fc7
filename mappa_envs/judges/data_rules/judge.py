"""`DataRules`: from the facts of a turn to its verdict, with blame where it belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mappa_envs.flow import picked
from mappa_envs.inspection import GRADED
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.criteria import Finding, Rule, criteria_from, verdict_from
from mappa_envs.judges.data_rules.inspector import CHECKED
from mappa_envs.judges.data_rules.rules import BREAKING, RULES, SPOILING
from mappa_envs.thoughts import visible_text
from mappa_envs.topologies.pipeline import ACCEPTED
from mappa_envs.transcript import Verdict

State = Mapping[str, Finding]
"""Findings on all artefacts at one time, by rule."""

_GOALS = {"fit": ("model.predicts",), "submit": ("submission.valid", "submission.own")}
_GOOD = ("submission.valid", "submission.own", "submission.beats")

_QUOTED = re.compile(r"`([^`\n]{2,60})`")
_MODEL = re.compile(
    r"regress|forest|boost|tree|neighbo|vector|ridge|lasso|logistic|linear|bayes|network", re.IGNORECASE
)
_VALIDATION = re.compile(r"validat|fold|hold.?out|held.?out|split", re.IGNORECASE)


class DataRules(Judge):
    """Scores the duties of data teams from facts; `rules.RULES` lists them.

    A turn is scored by what it did (its code ran) and by the state in which it leaves the role's artefacts. What was
    broken before the role began is its maker's fault, who was scored for it: the role that meets it is not punished
    for what it cannot do, and earns credit if it does it all the same.
    """

    id = "data-rules-1"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Score each request by its duty; a duty that this judge does not know is a failed verdict."""
        return [self._one(request) for request in requests]

    def _one(self, request: JudgeRequest) -> Verdict:
        if request.duty not in RULES:
            return Verdict.failed(f"{self.id} knows no duty {request.duty!r} ({', '.join(RULES)})", self.id)
        if CHECKED not in request.facts:
            return Verdict.failed(f"{self.id} needs the facts of an inspected workspace", self.id)
        now = state_of(request.facts)
        begun = next((turn for turn in reversed(request.earlier) if turn.agent != request.agent), None)
        before = state_of(begun.facts) if begun is not None else {}
        findings = {**now, **_conduct(request), **_talk(request, now), **_handling(request, now, before)}
        # Without ground truth there are no findings on what takes it.
        rules = [rule for rule in RULES[request.duty] if rule.key in findings]
        return verdict_from(criteria_from(rules, blamed(request.duty, rules, findings, before)), self.id)


def _conduct(request: JudgeRequest) -> dict[str, Finding]:
    tools = [tool for tool in request.tools if tool.status != "missing"]
    return {"ran": Finding(all(tool.status == "ok" for tool in tools) if tools else None)}


def _talk(request: JudgeRequest, now: State) -> dict[str, Finding]:
    text = visible_text(request.action)
    columns = set(_QUOTED.findall(request.task_prompt))
    good = all(now[key].met is not False for key in _GOOD if key in now)
    name = picked(text, list(request.choices)) if request.choices else None
    called = request.choices.get(name) if name is not None else None
    return {
        "columns": Finding(any(column in text for column in columns) if columns else None),
        "model": Finding(_MODEL.search(text) is not None),
        "validation": Finding(_VALIDATION.search(text) is not None),
        "spoke": Finding(bool(text.strip())),
        "judged": Finding((ACCEPTED in text) == good),
        "named": Finding(name is not None),
        "timed": Finding(called == _due(now)),
    }


def _due(now: State) -> str:
    """Return the duty that comes next: whose files are missing or broken, else the last one."""
    if any(_failed(now, key) for key in BREAKING["fit"]):
        return "prepare"
    return "fit" if any(_failed(now, key) for key in BREAKING["submit"]) else "submit"


def _handling(request: JudgeRequest, now: State, before: State) -> dict[str, Finding]:
    needed = BREAKING.get(request.duty, ())
    broken = any(_failed(before, key) for key in needed)
    spoilt = any(_failed(now, key) for key in needed)
    own = [turn.tools for turn in request.earlier if turn.agent == request.agent]
    tried = any(tool.status != "missing" for tools in (*own, request.tools) for tool in tools)
    goals = _GOALS.get(request.duty, ())
    return {
        "kept": Finding(not spoilt if before and not broken else None),
        "tried": Finding(tried if broken else None),
        "handled": Finding(all(now[key].met is True for key in goals) if broken else None),
    }


def blamed(duty: str, rules: Sequence[Rule], findings: State, before: State) -> dict[str, Finding]:
    """Return the findings without those misses that are the fault of an earlier role.

    Args:
        duty: The duty that is scored.
        rules: Its rules.
        findings: At least one per rule.
        before: The state that the role found when it began; empty for the first role.
    """
    broken = any(_failed(before, key) for key in BREAKING.get(duty, ()))
    spoilt = {key for cause, keys in SPOILING.get(duty, {}).items() if _failed(before, cause) for key in keys}
    left = {}
    for rule in rules:
        finding = findings[rule.key]
        excused = rule.key in spoilt or (broken and rule.key not in ("tried", "handled"))
        left[rule.key] = Finding(None) if excused and finding.met is False else finding
    return left


def state_of(facts: Mapping[str, Any]) -> State:
    """Return the findings in an inspector's facts; those that took the hidden answers go first."""
    merged = {**facts.get(CHECKED, {}), **facts.get(GRADED, {})}
    return {key: Finding(**value) for key, value in merged.items()}


def _failed(state: State, key: str) -> bool:
    return key in state and state[key].met is False
