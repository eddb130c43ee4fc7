"""`EnvSpec` as JSON. Kwargs beyond plain JSON are written as tagged objects: `{"$type": ..., ...}`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from envs_registry.entry_points import check_entry_point, load_entry_point
from envs_registry.errors import RegistryError
from envs_registry.spec import EnvSpec

_TAG = "$type"
_ALLOWED = "JSON values, tuples, pydantic models, and functions or classes that can be imported by name"


def spec_to_json(spec: EnvSpec) -> str:
    """Return `spec` as JSON text.

    Raises:
        RegistryError: If a part of it has no faithful JSON form.
    """
    data = {f.name: getattr(spec, f.name) for f in fields(spec) if f.init}
    for name in ("entry_point", "parallel_entry_point", "gym_entry_point"):
        if callable(data[name]):
            data[name] = _import_name(data[name], where=f"{spec.id}: {name}")
    data["kwargs"] = {k: _encode(v, f"{spec.id}: kwarg {k!r}") for k, v in spec.kwargs.items()}
    return json.dumps(data, allow_nan=False)


def spec_from_json(text: str) -> EnvSpec:
    """Build the spec that `spec_to_json` wrote.

    Raises:
        RegistryError: If the text is not such JSON.
    """
    try:
        data = json.loads(text)
        return EnvSpec(**{**data, "kwargs": {k: _decode(v) for k, v in data["kwargs"].items()}})
    except RegistryError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RegistryError(
            "not an EnvSpec",
            expected="the JSON that EnvSpec.to_json writes",
            got=f"{type(error).__name__}: {error}",
        ) from error


def _import_name(target: Callable[..., Any], *, where: str) -> str:
    name = f"{getattr(target, '__module__', None)}:{getattr(target, '__qualname__', None)}"
    try:
        check_entry_point(name, what=where)
        found = load_entry_point(name)
    except RegistryError:
        found = None
    if found is not target:
        raise RegistryError(
            f"{where} cannot be written as JSON",
            expected="a callable that can be imported by name",
            got=repr(target),
            fix="pass a 'module:attr' string, or define it at the top level of a module",
        )
    return name


def _encode(value: Any, where: str) -> Any:
    from pydantic import BaseModel

    match value:
        case None | bool() | str():
            return value
        case int() | float() if type(value) in (int, float) and value - value == 0:  # no inf, no nan
            return value
        case list():
            return [_encode(v, where) for v in value]
        case tuple() if type(value) is tuple:
            return {_TAG: "tuple", "items": [_encode(v, where) for v in value]}
        case dict() if all(isinstance(k, str) for k in value) and _TAG not in value:
            return {k: _encode(v, where) for k, v in value.items()}
        case BaseModel():
            name = _import_name(type(value), where=where)
            encoded = {_TAG: "model", "class": name, "json": value.model_dump_json()}
            # A field declared as a base class drops what a subclass adds; that must not pass silently.
            if _decode(encoded) == value:
                return encoded
        case _ if callable(value):
            return {_TAG: "import", "name": _import_name(value, where=where)}
    raise RegistryError(f"{where} cannot be written as JSON", expected=_ALLOWED, got=repr(value))


def _decode(value: Any) -> Any:
    from pydantic import BaseModel

    if isinstance(value, list):
        return [_decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    match value.get(_TAG):
        case None:
            return {k: _decode(v) for k, v in value.items()}
        case "tuple":
            return tuple(_decode(v) for v in value["items"])
        case "import":
            return load_entry_point(value["name"])
        case "model":
            model = load_entry_point(value["class"])
            if isinstance(model, type) and issubclass(model, BaseModel):
                return model.model_validate_json(value["json"])
    raise ValueError(f"unknown tagged value {value!r}")
