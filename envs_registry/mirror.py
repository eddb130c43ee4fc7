"""The same ids in PettingZoo's and Gymnasium's own registries."""

from __future__ import annotations

from envs_registry.errors import RegistryError
from envs_registry.spec import EnvSpec


def mirror_owners(env_id: str) -> list[str]:
    """Return the names of the registries that know `env_id` already."""
    import gymnasium
    import pettingzoo

    tables = {
        "PettingZoo (aec)": pettingzoo.aec_registry,
        "PettingZoo (parallel)": pettingzoo.parallel_registry,
        "Gymnasium": gymnasium.registry,
    }
    return [name for name, table in tables.items() if env_id in table]


def mirror_spec(spec: EnvSpec) -> None:
    """Register `spec` in PettingZoo and Gymnasium, in the place of what they knew under its id.

    Raises:
        RegistryError: If Gymnasium refuses the id; nothing is changed then.
    """
    import gymnasium
    import pettingzoo

    # Gymnasium can refuse (a versioned id beside an unversioned one), so it goes first. Both registries warn
    # when an id is overridden; whether it may be was decided before.
    previous = gymnasium.registry.pop(spec.id, None)
    if spec.gym_entry_point is not None:
        try:
            gymnasium.register(
                spec.id,
                entry_point=spec.gym_entry_point,
                nondeterministic=spec.nondeterministic,
                kwargs=spec.copy_kwargs(),
            )
        except gymnasium.error.Error as error:
            if previous is not None:
                gymnasium.registry[spec.id] = previous
            raise RegistryError(f"Gymnasium refuses {spec.id!r}", got=str(error)) from error
    pettingzoo.aec_registry.pop(spec.id, None)
    pettingzoo.register("aec", spec.id, spec.entry_point, kwargs=spec.copy_kwargs())
    pettingzoo.parallel_registry.pop(spec.id, None)
    if spec.parallel_entry_point is not None:
        pettingzoo.register("parallel", spec.id, spec.parallel_entry_point, kwargs=spec.copy_kwargs())
