"""`OutcomeJudge`: one shared score for every action, from the episode's outcome (the paper's ablation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from mappa_envs.errors import JudgeError
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.transcript import MAX_SCORE, Transcript, Verdict


class OutcomeJudge(Judge):
    """Gives all turns ten times the outcome's score when the episode ends; an undecided outcome is `failed`.

    Until then each turn's verdict is `skipped` with reward 0; at the last step every agent's reward is the shared
    one. Training reads the final verdicts from the transcript.
    """

    id = "outcome-1"
    scope: ClassVar[Literal["turn", "episode"]] = "episode"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Refuse: turns are not scored by themselves.

        Raises:
            JudgeError: Always.
        """
        raise JudgeError("OutcomeJudge scores episodes", fix="call score_episode on the finished transcript")

    async def score_episode(self, transcript: Transcript, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give every turn the same verdict, from the outcome.

        Raises:
            JudgeError: If the episode has no outcome yet.
        """
        outcome = transcript.outcome
        if outcome is None:
            raise JudgeError("the episode has no outcome yet", fix="score it after its last step")
        if outcome.success is None:
            return [Verdict.failed(f"outcome undecided: {outcome.reason}", self.id) for _ in transcript.turns]
        return [Verdict.ok(MAX_SCORE * outcome.score, outcome.reason, self.id) for _ in transcript.turns]
