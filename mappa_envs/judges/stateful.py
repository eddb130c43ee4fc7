"""`StatefulCoach`: knows how it has scored each role on each kind of task, and takes out bias and drift."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mappa_envs.errors import ConfigError
from mappa_envs.judges.base import Judge, JudgeRequest, checked
from mappa_envs.judges.panel import total_cost
from mappa_envs.transcript import MAX_SCORE, MIN_SCORE, Verdict

_Cell = tuple[str, str]
"""A role and a kind of task."""


@dataclass(frozen=True, slots=True)
class Level:
    """How one role is scored on one kind of task."""

    weight: float
    """Scores behind the mean; old ones count less than one each."""
    mean: float
    """Recent mean of the score (minus that of the reference, where there is one)."""
    spread: float
    """Recent standard deviation of the same."""
    first: float | None
    """The mean when there were first enough scores for it; None until then."""

    def with_scores(self, scores: Sequence[float], horizon: float, enough: int) -> Level:
        """Return the level after more scores, whatever their order; older weights decay by `1 - 1/horizon` each."""
        old = self.weight * (1 - 1 / horizon) ** len(scores)
        weight = old + len(scores)
        mean = (old * self.mean + math.fsum(scores)) / weight
        square = (old * (self.spread**2 + self.mean**2) + math.fsum(s * s for s in scores)) / weight
        first = mean if self.first is None and weight >= enough else self.first
        return Level(weight, mean, math.sqrt(max(0.0, square - mean**2)), first)


class StatefulCoach(Judge):
    r"""Corrects another judge by its own record: the mean of its scores per role and kind of task.

    The record is of the offset `x`, a score minus that of the reference judge on the same turn, or the plain score
    without a reference. With `m(r, k)` its recent mean for role `r` and kind `k`:

        corrected = score - shift,  shift = m(r, k) - target(r, k),  at most `max_shift` either way

    | `bias` | `drift` | `target(r, k)` |
    |---|---|---|
    | on | off | the mean of `m(r, .)` over the kinds |
    | off | on | `first(r, k)`: what `m(r, k)` was when there were first `enough` scores |
    | on | on | the mean of `first(r, .)` over the kinds |

    What this leaves alone: differences between actions of one role on one kind of task stay exactly as they are (up
    to the ends of the scale), and so do differences between roles. What it takes out: differences between the means of
    kinds, up to `max_shift` points. Without a reference these include true ones (a kind on which the team is better
    loses its lead); with one, a true difference that the reference sees stays. For the policy gradient either
    is a baseline per kind of task, which changes no expected gradient. Drift is only told from progress by a
    reference, so `drift` needs one.

    The mean is corrected, not the spread. The record moves in `commit` only, between the steps of a training run: until
    then equal requests get equal scores, in whatever order they come. The score as given stands in the reason.

    Args:
        judge: Scores the turns.
        reference: A judge that is trusted to be unbiased on average, e.g. the rule judge.
        bias: Take out differences between the kinds of task.
        drift: Hold each level where it was first.
        max_shift: Largest correction, in points.
        enough: Scores of a role on a kind before it is corrected.
        horizon: Scores after which an old one counts 1/e.

    Raises:
        ConfigError: If a judge scores whole episodes, a number is out of range, or drift has no reference.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        reference: Judge | None = None,
        bias: bool = True,
        drift: bool = False,
        max_shift: float = 3.0,
        enough: int = 20,
        horizon: float = 1000,
    ) -> None:
        for one in (judge, reference):
            if one is not None and one.scope != "turn":
                raise ConfigError(
                    f"StatefulCoach cannot use {one.id!r}",
                    expected="judges that score turns",
                    got="one that scores whole episodes",
                )
        if drift and reference is None:
            raise ConfigError(
                "StatefulCoach: drift cannot be told from the team's progress",
                expected="a reference judge with drift=True",
                fix="give a reference, or leave drift off",
            )
        for name, value, least in (("max_shift", max_shift, 0), ("enough", enough, 1), ("horizon", horizon, 1)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
                raise ConfigError(f"StatefulCoach: bad {name}", expected=f"a number from {least}", got=repr(value))
        self.judge, self.reference, self.bias, self.drift = judge, reference, bias, drift
        self.max_shift, self.enough, self.horizon = max_shift, enough, horizon
        against = f" against {reference.id}" if reference is not None else ""
        self.id = f"stateful-1({judge.id}{against})"
        self.levels: dict[_Cell, Level] = {}
        """What was committed, by role and kind."""
        self._seen: dict[_Cell, list[float]] = {}

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Give the inner judge's verdicts with the correction of the last commit; failed ones pass through."""
        judges = [self.judge] if self.reference is None else [self.judge, self.reference]
        given = await asyncio.gather(*(judge.score(requests) for judge in judges))
        for judge, verdicts in zip(judges, given, strict=True):
            checked(judge, verdicts, len(requests))
        return [self._corrected(request, *one) for request, one in zip(requests, zip(*given, strict=True), strict=True)]

    def shift(self, role: str, kind: str) -> float:
        """Return the points that are taken off the scores of a role on a kind of task."""
        level = self.levels.get((role, kind))
        if level is None or level.first is None or not (self.bias or self.drift):
            return 0.0
        ready = [one for (r, _), one in sorted(self.levels.items()) if r == role and one.first is not None]
        levels = ready if self.bias else [level]
        targets = [one.first if self.drift and one.first is not None else one.mean for one in levels]
        shift = level.mean - math.fsum(targets) / len(targets)
        return max(-self.max_shift, min(self.max_shift, shift))

    def commit(self) -> None:
        """Take the scores since the last commit into the record."""
        for cell, scores in self._seen.items():
            level = self.levels.get(cell, Level(0.0, 0.0, 0.0, None))
            self.levels[cell] = level.with_scores(scores, self.horizon, self.enough)
        self._seen = {}
        for judge in (self.judge, self.reference):
            if judge is not None:
                judge.commit()

    def state(self) -> dict[str, Any]:
        """Return the record and the states of the judges within."""
        return {
            "levels": [{"role": r, "kind": k, **asdict(level)} for (r, k), level in sorted(self.levels.items())],
            "judge": self.judge.state(),
            "reference": self.reference.state() if self.reference is not None else {},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a record.

        Raises:
            ConfigError: If it is not the state of a `StatefulCoach`.
        """
        try:
            levels = {(one["role"], one["kind"]): _level(one) for one in state["levels"]}
            inner, reference = state["judge"], state["reference"]
        except (KeyError, TypeError) as error:
            raise ConfigError(
                "StatefulCoach: not its state",
                expected="what StatefulCoach.state returned",
                got=f"{type(error).__name__}: {error}",
                fix="resume with the judge that the checkpoint was made with",
            ) from error
        self.levels, self._seen = levels, {}
        self.judge.restore(inner)
        if self.reference is not None:
            self.reference.restore(reference)

    def _corrected(self, request: JudgeRequest, verdict: Verdict, reference: Verdict | None = None) -> Verdict:
        cost = verdict.cost if reference is None else total_cost([verdict, reference])
        if verdict.score is None:
            return Verdict(verdict.status, None, 0.0, verdict.reason, self.id, cost)
        cell = request.role, request.task_kind
        if reference is None:
            self._seen.setdefault(cell, []).append(verdict.score)
        elif reference.score is not None:
            self._seen.setdefault(cell, []).append(verdict.score - reference.score)
        shift = self.shift(*cell)
        score = max(MIN_SCORE, min(MAX_SCORE, verdict.score - shift))
        note = f"{verdict.score:g} as given, {-shift:+.2f} for {request.role} on {request.task_kind}: "
        return Verdict.ok(score, (note if shift else "") + verdict.reason, self.id, cost)


def _level(data: Mapping[str, Any]) -> Level:
    return Level(**{key: data[key] for key in ("weight", "mean", "spread", "first")})
