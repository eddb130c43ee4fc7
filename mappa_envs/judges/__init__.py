"""Judges, by name."""

from __future__ import annotations

from collections.abc import Callable

from envs_registry.errors import ConfigError, did_you_mean
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.judges.replay import ReplayJudge


def get_judge(judge: str | Judge, *, rules: Callable[[], Judge]) -> Judge:
    """Return a judge by name; a `Judge` is returned as it is.

    Args:
        judge: `rules`, `outcome` or a judge.
        rules: Makes the rule judge of the environment's domain.

    Raises:
        ConfigError: If there is no judge of that name.
    """
    if isinstance(judge, Judge):
        return judge
    factories: dict[str, Callable[[], Judge]] = {"rules": rules, "outcome": OutcomeJudge}
    if not isinstance(judge, str) or judge not in factories:
        raise ConfigError(
            f"unknown judge {judge!r}",
            expected=f"one of {', '.join(factories)}, or a Judge",
            fix=did_you_mean(judge, factories, "pass a Judge of your own"),
        )
    return factories[judge]()


__all__ = ["Judge", "JudgeRequest", "OutcomeJudge", "ReplayJudge", "get_judge"]
