"""`PanelJudge`: the median of several judges, with their disagreement."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mappa_envs.errors import ConfigError
from mappa_envs.judges.base import Judge, JudgeRequest, checked
from mappa_envs.transcript import Cost, Verdict


class PanelJudge(Judge):
    """Asks all members at the same time and gives the median of the scores that came.

    With an even number of scores the median is the mean of the middle two. A member that fails has no vote; with
    fewer than `quorum` scores the verdict is `failed`, so that a panel never shrinks to one opinion unnoticed.

    Args:
        members: At least two judges of turns.
        quorum: Scores that a verdict needs, 1 to the number of members; by default more than half of them.

    Raises:
        ConfigError: If there are too few members, one of them scores whole episodes, or the quorum cannot be met.
    """

    def __init__(self, members: Sequence[Judge], *, quorum: int | None = None) -> None:
        if len(members) < 2:
            raise ConfigError("PanelJudge: too few members", expected="at least two judges", got=f"{len(members)}")
        for member in members:
            if member.scope != "turn":
                raise ConfigError(
                    f"PanelJudge: {member.id!r} cannot be a member",
                    expected="judges that score turns",
                    got="one that scores whole episodes",
                    fix="give the panel to HindsightJudge to score whole episodes with it",
                )
        needed = len(members) // 2 + 1 if quorum is None else quorum
        if isinstance(needed, bool) or not isinstance(needed, int) or not 1 <= needed <= len(members):
            raise ConfigError("PanelJudge: bad quorum", expected=f"1 to {len(members)} or None", got=repr(quorum))
        self.members, self.quorum = tuple(members), needed
        self.id = f"panel-1({', '.join(m.id for m in members)}; quorum {needed})"

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give the median of the members' scores for each request."""
        votes = await asyncio.gather(*(member.score(requests) for member in self.members))
        for member, given in zip(self.members, votes, strict=True):
            checked(member, given, len(requests))
        return [self._verdict(one) for one in zip(*votes, strict=True)]

    def commit(self) -> None:
        """Commit every member."""
        for member in self.members:
            member.commit()

    def state(self) -> dict[str, Any]:
        """Return the members' states, in order."""
        return {"members": [member.state() for member in self.members]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore every member.

        Raises:
            ConfigError: If the state is of a panel of another size.
        """
        states = state.get("members", ())
        if len(states) != len(self.members):
            raise ConfigError(
                "PanelJudge: not the state of this panel",
                expected=f"the states of {len(self.members)} members",
                got=f"{len(states)}",
                fix="resume with the judge that the checkpoint was made with",
            )
        for member, one in zip(self.members, states, strict=True):
            member.restore(one)

    def _verdict(self, votes: Sequence[Verdict]) -> Verdict:
        cost = total_cost(votes)
        scores = [vote.score for vote in votes if vote.score is not None]
        parts = [
            f"{member.id}: {vote.reason if vote.score is None else f'{vote.score:g}'}"
            for member, vote in zip(self.members, votes, strict=True)
        ]
        listed = "; ".join(parts)
        if len(scores) < self.quorum:
            return Verdict.failed(f"{len(scores)} scores, the quorum is {self.quorum} ({listed})", self.id, cost)
        median = statistics.median(scores)
        spread = max(scores) - min(scores)
        reason = f"median of {len(scores)} of {len(votes)}, they differ by up to {spread:g} ({listed})"
        return Verdict.ok(median, reason, self.id, cost)


def total_cost(verdicts: Sequence[Verdict]) -> Cost:
    """Return what several verdicts cost together."""
    return Cost(
        calls=sum(v.cost.calls for v in verdicts),
        prompt_tokens=sum(v.cost.prompt_tokens for v in verdicts),
        completion_tokens=sum(v.cost.completion_tokens for v in verdicts),
        money=sum(v.cost.money for v in verdicts),
    )
