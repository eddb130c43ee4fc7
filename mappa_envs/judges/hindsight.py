"""`HindsightJudge`: re-scores the actions of a finished episode with its outcome known, from the last to the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from mappa_envs.errors import ConfigError, JudgeError
from mappa_envs.inspection import without_graded
from mappa_envs.judges.base import Hindsight, Judge, JudgeRequest, checked
from mappa_envs.transcript import Transcript, Turn, Verdict


class HindsightJudge(Judge):
    """Has another judge score every turn when the episode is over.

    It goes backward, layer by layer: a turn is judged in the knowledge of the outcome and of the later turns with the
    verdicts that hindsight gave them, so that a failure is traced to the action that caused it. Each request carries
    this as `hindsight`; a coach is shown it, while a rule judge, which scores from facts of the turn alone, gives the
    same scores as without.

    While the episode runs each turn's verdict is `skipped` with reward 0. The final verdicts stand beside the turns'
    own in the transcript, and training reads them from there; no reward that was given is changed. To re-score
    stored episodes with it, the turns keep the verdicts that they were given.

    Args:
        judge: Scores the turns.

    Raises:
        ConfigError: If that judge scores whole episodes itself.
    """

    scope: ClassVar[Literal["turn", "episode"]] = "episode"

    def __init__(self, judge: Judge) -> None:
        if judge.scope != "turn":
            raise ConfigError(
                f"HindsightJudge cannot use {judge.id!r}",
                expected="a judge that scores turns",
                got="one that scores whole episodes",
            )
        self.judge = judge
        self.id = f"hindsight-1({judge.id})"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Refuse: turns are not scored before the end.

        Raises:
            JudgeError: Always.
        """
        raise JudgeError("HindsightJudge scores episodes", fix="call score_episode on the finished transcript")

    async def score_episode(self, transcript: Transcript, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give one verdict per turn, each in the knowledge of the outcome and of what came after.

        Raises:
            JudgeError: If the episode has no outcome yet, or the inner judge breaks its contract.
        """
        if transcript.outcome is None:
            raise JudgeError("the episode has no outcome yet", fix="score it after its last step")
        later: tuple[Turn, ...] = ()
        for layer in sorted({turn.layer for turn in transcript.turns}, reverse=True):
            turns = [turn for turn in transcript.turns if turn.layer == layer]
            known = Hindsight(transcript.outcome, later)
            asked = [replace(requests[turn.index], hindsight=known) for turn in turns]
            verdicts = checked(self.judge, await self.judge.score(asked), len(asked))
            judged = [
                replace(turn, verdict=replace(verdict, judge=self.id), facts=without_graded(turn.facts))
                for turn, verdict in zip(turns, verdicts, strict=True)
            ]
            later = (*judged, *later)
        return [turn.verdict for turn in later]

    def commit(self) -> None:
        """Commit the inner judge."""
        self.judge.commit()

    def state(self) -> dict[str, Any]:
        """Return the inner judge's state."""
        return self.judge.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the inner judge."""
        self.judge.restore(state)
