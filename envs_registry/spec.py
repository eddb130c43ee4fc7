"""`EnvSpec`: all that is known about a registered environment."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, get_args

from envs_registry.entry_points import EntryPoint, check_entry_point
from envs_registry.errors import ConfigError, RegistryError, UnknownEnvError
from envs_registry.ids import parse_id

Face = Literal["aec", "parallel", "gym"]
"""The API that an environment is seen through: PettingZoo's AEC or parallel one, or Gymnasium's."""

FACES: tuple[Face, ...] = get_args(Face)


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """A registered environment. Immutable; its kwargs are a private deep copy behind a read-only view.

    Raises:
        EnvIdError: If the id does not follow `Namespace/Name-vN`.
        RegistryError: If an entry point or the kwargs are malformed, or a kwarg cannot be deep-copied.
    """

    id: str
    """`Namespace/Name-vN`."""
    entry_point: EntryPoint
    """Makes the PettingZoo `AECEnv`."""
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Default keywords of every face: configs or factories, deep-copied at each `make`."""
    parallel_entry_point: EntryPoint | None = None
    """Makes the PettingZoo `ParallelEnv`."""
    gym_entry_point: EntryPoint | None = None
    """Makes the `gymnasium.Env`."""
    nondeterministic: bool = False
    """Whether the same seed and actions may give different episodes (a live judge, for example)."""
    description: str = ""
    """One line for people."""
    namespace: str = field(init=False, compare=False)
    name: str = field(init=False, compare=False)
    version: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        env_id = parse_id(self.id, versioned=True)
        for attribute, value in (
            ("namespace", env_id.namespace),
            ("name", env_id.name),
            ("version", env_id.version),
        ):
            object.__setattr__(self, attribute, value)
        check_entry_point(self.entry_point, what=f"{self.id}: entry_point")
        for attribute in ("parallel_entry_point", "gym_entry_point"):
            if getattr(self, attribute) is not None:
                check_entry_point(getattr(self, attribute), what=f"{self.id}: {attribute}")
        object.__setattr__(self, "kwargs", MappingProxyType(_copied(self.id, self.kwargs)))

    @property
    def faces(self) -> tuple[Face, ...]:
        """The faces that `make` can give."""
        points = (self.entry_point, self.parallel_entry_point, self.gym_entry_point)
        return tuple(face for face, point in zip(FACES, points, strict=True) if point is not None)

    def entry_point_of(self, face: Face) -> EntryPoint:
        """Return the entry point of a face.

        Raises:
            ConfigError: If there is no such face.
            UnknownEnvError: If this environment was registered without it.
        """
        points: dict[str, EntryPoint | None] = {
            "aec": self.entry_point,
            "parallel": self.parallel_entry_point,
            "gym": self.gym_entry_point,
        }
        if face not in points:
            raise ConfigError("unknown face", expected=", ".join(map(repr, FACES)), got=repr(face))
        point = points[face]
        if point is None:
            argument = f"{face}_entry_point"
            raise UnknownEnvError(
                f"{self.id} has no {face!r} face",
                expected=f"one of {', '.join(map(repr, self.faces))}",
                got=repr(face),
                fix=f"register it with {argument}=...",
            )
        return point

    def copy_kwargs(self) -> dict[str, Any]:
        """Return a deep copy of the default keywords."""
        return copy.deepcopy(dict(self.kwargs))

    def to_json(self) -> str:
        """Return the spec as JSON text; `EnvSpec.from_json` is its inverse.

        Raises:
            RegistryError: If an entry point is a callable that cannot be imported by name, or a kwarg is not
                made of JSON values, tuples, pydantic models and importable callables.
        """
        from envs_registry.spec_json import spec_to_json

        return spec_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> EnvSpec:
        """Build a spec from `to_json`'s text. It imports the modules that the text names: trust its source.

        Raises:
            RegistryError: If the text is not such JSON.
        """
        from envs_registry.spec_json import spec_from_json

        return spec_from_json(text)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by constructor arguments: the read-only view of kwargs does not pickle."""
        values = (getattr(self, f.name) for f in fields(self) if f.init)
        return (EnvSpec, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values))

    def __repr__(self) -> str:
        return f"EnvSpec({self.id!r}, faces={list(self.faces)})"


def _copied(env_id: str, kwargs: object) -> dict[str, Any]:
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise RegistryError(f"{env_id}: kwargs", expected="a dict with string keys, or None", got=repr(kwargs))
    copied: dict[str, Any] = {}
    for name, value in kwargs.items():
        try:
            copied[name] = copy.deepcopy(value)
        except Exception as error:
            raise RegistryError(
                f"{env_id}: kwarg {name!r} cannot be deep-copied, so environments would share it",
                expected="a config, or a factory that builds the live object",
                got=f"{type(value).__name__} ({type(error).__name__}: {error})",
                fix=f"register a config or a callable that makes the {type(value).__name__}",
            ) from error
    return copied
