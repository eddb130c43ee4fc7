"""Judges by name or config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from envs_registry.entry_points import check_kwargs, load_entry_point
from envs_registry.errors import ConfigError, EntryPointError, did_you_mean
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
    return tuple(sorted({_RULES, *_BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


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
    creator = rules if name == _RULES else _creator(name)
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


def _creator(name: str) -> Callable[..., Any]:
    if ":" in name:
        return load_entry_point(name)
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    taken = name in _BUILT_IN
    if len(points) + taken > 1:
        raise EntryPointError(
            f"the judge {name!r} is declared more than once",
            expected="one declaration",
            got=", ".join([*(["built in"] if taken else []), *map(_describe, points)]),
            fix="rename the entry point, or uninstall one of the distributions",
        )
    if taken:
        return load_entry_point(_BUILT_IN[name])
    if points:
        return _load(points[0])
    raise ConfigError(
        f"unknown judge {name!r}",
        expected=f"one of {', '.join(judge_names())}, 'module:Class', or a Judge",
        fix=did_you_mean(name, judge_names(), "pass a Judge of your own"),
    )


def _load(point: EntryPoint) -> Callable[..., Any]:
    try:
        creator = point.load()
    except (Exception, SystemExit) as error:
        raise EntryPointError(
            f"the judge {point.name!r} of a plugin cannot be loaded",
            expected=_describe(point),
            got=f"{type(error).__name__}: {error}",
            fix="repair or uninstall that distribution, or install the extra that it needs",
        ) from error
    if not callable(creator):
        raise EntryPointError(
            f"the judge {point.name!r} of a plugin cannot be called",
            expected="a class or a function",
            got=repr(creator),
        )
    made: Callable[..., Any] = creator
    return made


def _describe(point: EntryPoint) -> str:
    where = point.dist.name if point.dist is not None else "unknown distribution"
    return f"{point.name} = {point.value} of {where}"
