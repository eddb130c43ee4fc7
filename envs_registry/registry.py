"""`register`, `make`, `spec`, `registered`: one table of ids, mirrored in PettingZoo and Gymnasium."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, overload

from envs_registry.entry_points import EntryPoint, check_kwargs, load_entry_point, load_module
from envs_registry.errors import RegistryError, UnknownEnvError
from envs_registry.ids import EnvId, parse_id, split_module
from envs_registry.mirror import mirror_owners, mirror_spec
from envs_registry.plugins import FailedPlugin, load_plugins
from envs_registry.spec import EnvSpec, Face

if TYPE_CHECKING:  # importing either takes longer than all of this package
    import gymnasium
    import pettingzoo

_registry: dict[str, EnvSpec] = {}
_lock = threading.RLock()


def register(
    id: str,
    entry_point: EntryPoint,
    *,
    kwargs: Mapping[str, Any] | None = None,
    parallel_entry_point: EntryPoint | None = None,
    gym_entry_point: EntryPoint | None = None,
    nondeterministic: bool = False,
    description: str = "",
    overwrite: bool = False,
) -> EnvSpec:
    """Register an environment here, in PettingZoo and, when there is a Gymnasium face, in Gymnasium.

    Entry points are `"module:attr"` strings, imported at the first `make`, or callables. Prefer strings, and
    register in a module: a spawned worker process sees nothing that was defined in `__main__`.

    Args:
        id: `Namespace/Name-vN`.
        entry_point: Makes the PettingZoo `AECEnv`.
        kwargs: Default keywords of every face: configs or factories, never live objects. Deep-copied now and
            at each `make`.
        parallel_entry_point: Makes the PettingZoo `ParallelEnv`.
        gym_entry_point: Makes the `gymnasium.Env`.
        nondeterministic: Whether the same seed and actions may give different episodes.
        description: One line for people.
        overwrite: Replace another registration of the same id instead of refusing. Registering an equal spec
            again, as reloading a module does, is never an error.

    Returns:
        The registered spec.

    Raises:
        EnvIdError: If the id does not follow the grammar.
        RegistryError: If the id is taken, or an entry point or a kwarg is malformed or cannot be deep-copied.
    """
    new = EnvSpec(
        id=id,
        entry_point=entry_point,
        kwargs={} if kwargs is None else kwargs,
        parallel_entry_point=parallel_entry_point,
        gym_entry_point=gym_entry_point,
        nondeterministic=nondeterministic,
        description=description,
    )
    with _lock:
        old = _registry.get(id)
        owners = [] if old is not None else mirror_owners(id)
        if not overwrite and (owners or (old is not None and not _is_reload(old, new))):
            raise RegistryError(
                f"{id!r} is registered already" + (f" in {' and '.join(owners)}" if owners else ""),
                expected="an id that is free",
                got=f"a second, different registration; the first is {old!r}" if old else repr(new),
                fix="choose another name or version, or pass overwrite=True",
            )
        mirror_spec(new)
        _registry[id] = new
    return new


@overload
def make(
    id: str | EnvSpec, /, *, face: Literal["aec"] = "aec", **overrides: Any
) -> pettingzoo.AECEnv[Any, Any, Any]: ...
@overload
def make(
    id: str | EnvSpec, /, *, face: Literal["parallel"], **overrides: Any
) -> pettingzoo.ParallelEnv[Any, Any, Any]: ...
@overload
def make(id: str | EnvSpec, /, *, face: Literal["gym"], **overrides: Any) -> gymnasium.Env[Any, Any]: ...
@overload
def make(id: str | EnvSpec, /, *, face: Face, **overrides: Any) -> Any: ...
def make(id: str | EnvSpec, /, *, face: Face = "aec", **overrides: Any) -> Any:
    """Make an environment.

    The AEC and parallel faces come as their entry points make them, without PettingZoo's
    `OrderEnforcingWrapper`: the environments of this project name a wrong order of calls themselves, and an
    entry point is free to wrap. The Gymnasium face is made by `gymnasium.make`, with its usual checker and
    order wrappers and with `env.spec` set.

    Args:
        id: `Namespace/Name-vN`; `Namespace/Name` for the newest version; `module:Namespace/Name-vN` to import
            first the `module` that registers it; or a spec.
        face: `aec`, `parallel` or `gym`.
        **overrides: Keywords that replace or add to the registered ones. They are passed on as they are.

    Returns:
        A `pettingzoo.AECEnv`, a `pettingzoo.ParallelEnv` or a `gymnasium.Env`.

    Raises:
        UnknownEnvError: If nothing is registered under the id, or not with that face.
        ConfigError: If a keyword is unknown or missing.
        EntryPointError: If a module to import fails.
        RegistryError: If the entry point makes something else.
    """
    env_spec = id if isinstance(id, EnvSpec) else spec(id)
    creator = load_entry_point(env_spec.entry_point_of(face))
    kwargs = {**env_spec.copy_kwargs(), **overrides}
    check_kwargs(creator, kwargs, env_id=env_spec.id)
    if face == "gym":
        return _make_gym(env_spec, kwargs)
    import pettingzoo

    wanted = pettingzoo.AECEnv if face == "aec" else pettingzoo.ParallelEnv
    env = creator(**kwargs)
    if not isinstance(env, wanted):
        raise RegistryError(
            f"the {face!r} entry point of {env_spec.id} made the wrong thing",
            expected=f"a pettingzoo.{wanted.__name__}",
            got=f"a {type(env).__name__}",
            fix="register it under the argument of its face",
        )
    return env


def _make_gym(env_spec: EnvSpec, kwargs: dict[str, Any]) -> Any:
    import gymnasium

    return gymnasium.make(
        gymnasium.envs.registration.EnvSpec(
            env_spec.id,
            entry_point=env_spec.gym_entry_point,
            nondeterministic=env_spec.nondeterministic,
        ),
        **kwargs,
    )


def spec(id: str, /) -> EnvSpec:
    """Return the spec of an id, loading plugins at the first call.

    Args:
        id: As for `make`; without a version the newest one.

    Raises:
        EnvIdError: If the id does not follow the grammar.
        UnknownEnvError: If nothing is registered under it; names the nearest id and the versions there are.
        EntryPointError: If the module of a `module:Namespace/Name-vN` id cannot be imported.
    """
    failed = load_plugins()
    module, plain = split_module(id)
    wanted = parse_id(plain)
    if module is not None:
        load_module(module, why=f"environment id {id!r}")
    versions = {s.version: s for s in registered(wanted.namespace) if s.name == wanted.name}
    if versions and wanted.version is None:
        return versions[max(versions)]
    if wanted.version in versions:
        return versions[wanted.version]
    raise _unknown(wanted, versions, module, failed)


def registered(namespace: str | None = None) -> tuple[EnvSpec, ...]:
    """Return all registered specs, sorted by id (version 10 after 9), loading plugins at the first call.

    Args:
        namespace: Only those of this namespace.
    """
    load_plugins()
    specs = (s for s in tuple(_registry.values()) if namespace in (None, s.namespace))
    return tuple(sorted(specs, key=lambda s: (s.namespace, s.name, s.version)))


def pprint_registry() -> None:
    """Print every registered id with its faces and description."""
    specs = registered()
    width = max((len(s.id) for s in specs), default=0)
    for s in specs:
        print(f"{s.id:<{width}}  {', '.join(s.faces):<18}  {s.description}".rstrip())


def _is_reload(old: EnvSpec, new: EnvSpec) -> bool:
    """Tell whether `new` says the same as `old`; a reloaded module has new objects of the old names."""
    return all(_by_name(getattr(old, f.name)) == _by_name(getattr(new, f.name)) for f in fields(EnvSpec))


def _by_name(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _by_name(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [_by_name(v) for v in value]
    if callable(getattr(value, "model_dump_json", None)) and not isinstance(value, type):
        return _by_name(type(value)), value.model_dump_json()
    name = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '<')}"
    return name if callable(value) and "<" not in name else value  # lambdas and local functions share names


def _unknown(
    wanted: EnvId, versions: Mapping[int, EnvSpec], module: str | None, failed: Iterable[FailedPlugin]
) -> UnknownEnvError:
    hints = [f"these plugins failed to load: {'; '.join(map(str, failed))}"] if failed else []
    if versions:
        have = ", ".join(f"v{v}" for v in sorted(versions))
        return UnknownEnvError(
            f"{wanted.namespace}/{wanted.name} has no version {wanted.version}",
            expected=f"one of {have}",
            got=f"v{wanted.version}",
            fix="; ".join([f"use {versions[max(versions)].id!r}", *hints]),
        )
    names = {f"{s.namespace}/{s.name}": s.namespace for s in registered()}
    known = wanted.namespace in names.values()
    # A wrong namespace with a right name is the nearest when whole names are compared; case is never meant.
    folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(f"{wanted.namespace}/{wanted.name}".lower(), folded, n=1, cutoff=0.6)
    if close:
        hints.insert(0, f"did you mean {folded[close[0]]!r}?")
    else:
        hints.insert(0, "import the package that registers it, install its plugin, or make 'module:Namespace/Name-vN'")
    if known:
        mine = ", ".join(sorted(name for name, namespace in names.items() if namespace == wanted.namespace))
        what, expected = (
            f"namespace {wanted.namespace!r} has no environment {wanted.name!r}",
            f"one of {mine}",
        )
    else:
        what = f"no environment of namespace {wanted.namespace!r} is registered"
        expected = f"one of the namespaces {', '.join(sorted(set(names.values()))) or '(none yet)'}"
    if module is not None:
        what += f", although {module!r} was imported"
    return UnknownEnvError(what, expected=expected, got=repr(str(wanted)), fix="; ".join(hints))
