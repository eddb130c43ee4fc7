"""Judges by name or config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envs_registry.entry_points import EntryPoint, check_kwargs
from envs_registry.errors import ConfigError, EntryPointError
from envs_registry.named import find_creator, known_names
from mappa_envs.judges.base import Judge

GROUP = "mappa.judges"

JudgeConfig = str | Mapping[str, Any] | Judge
"""A name, `{"name": ..., **settings}`, or a judge."""

_BUILT_IN = {
    "outcome": "mappa_envs.judges.outcome:OutcomeJudge",
    "coach": "mappa_envs.judges.coach.judge:CoachJudge",
    "panel": "mappa_envs.judges.panel:PanelJudge",
    "stateful": "mappa_envs.judges.stateful:StatefulCoach",
    "hindsight": "mappa_envs.judges.hindsight:HindsightJudge",
}
_RULES = "rules"
_NESTED = ("judge", "reference", "members")
"""Settings of a judge that are judges themselves, given as configs."""


def judge_names() -> tuple[str, ...]:
    """Return the names of the built-in judges and of those that installed plugins declare."""
    return known_names(GROUP, {_RULES, *_BUILT_IN})


def get_judge(judge: JudgeConfig, *, rules: Callable[[], Judge]) -> Judge:
    """Return a judge by name or config; a `Judge` is returned as it is.

    Args:
        judge: `rules`, a built-in name, the name of an entry point of the group `mappa.judges`, or `module:Class`;
            with settings as a mapping `{"name": ..., **settings}`. The settings `judge`, `reference` and `members`
            of judges that use others are configs of the same kind.
        rules: Makes the rule judge of the environment's domain; it has no settings.

    Raises:
        ConfigError: If the name or a setting is wrong.
        EntryPointError: If a plugin's judge cannot be loaded, is declared twice or is no judge.
    """
    if isinstance(judge, Judge):
        return judge
    if not isinstance(judge, str | Mapping):
        raise ConfigError("judge is of the wrong type", expected="a name, a mapping or a Judge", got=repr(judge))
    config = {"name": judge} if isinstance(judge, str) else dict(judge)
    name = config.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("a judge needs a name", expected="{'name': ..., settings}", got=repr(judge))
    settings = {key: _nested(value, rules) if key in _NESTED else value for key, value in config.items()}
    creators: dict[str, EntryPoint] = {_RULES: rules, **_BUILT_IN}
    creator = find_creator(name, kind="judge", group=GROUP, built_in=creators)
    if name == _RULES and settings:
        raise ConfigError("the judge 'rules' has no settings", got=", ".join(settings), fix="leave them out")
    check_kwargs(creator, settings, env_id=f"judge {name!r}")
    made = creator(**settings)
    if not isinstance(made, Judge):
        raise EntryPointError(
            f"{name!r} makes no judge",
            expected="a subclass of mappa_envs.judges.base.Judge, or a function that returns an instance",
            got=f"an object of type {type(made).__name__}",
        )
    return made


def _nested(value: Any, rules: Callable[[], Judge]) -> Any:
    if isinstance(value, list | tuple):
        return [get_judge(member, rules=rules) for member in value]
    return None if value is None else get_judge(value, rules=rules)
