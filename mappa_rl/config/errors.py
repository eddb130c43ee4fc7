"""From pydantic's errors to ones that name the dotted key, expected, got and the nearest key."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from envs_registry.errors import ConfigError, did_you_mean

_MAX_SHOWN = 200


def dotted_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return all dotted keys of a model, nested models (in unions too) included."""
    return tuple(dict.fromkeys(_walk(model, "", ())))


def explain(error: ValidationError, model: type[BaseModel], data: Mapping[str, Any], *, what: str) -> ConfigError:
    """Return a `ConfigError` for a failed validation.

    Args:
        error: What pydantic raised.
        model: The model that refused the data.
        data: The data.
        what: Name of the data for the first line, e.g. the file.
    """
    known = dotted_keys(model)
    by_key: dict[str, list[tuple[str, str, str]]] = {}
    for item in error.errors(include_url=False):
        path = _data_path(item, data)
        by_key.setdefault(".".join(path) or "(whole)", []).append(_parts(item, path, known))
    # A key has several errors where it may be one of several types, and is none of them.
    found = {
        key: [" or ".join(dict.fromkeys(filter(None, c))) for c in zip(*parts, strict=True)]
        for key, parts in by_key.items()
    }
    if len(found) == 1:
        ((key, (expected, got, fix)),) = found.items()
        return ConfigError(f"{what}: {key!r} is wrong", expected=expected, got=got, fix=fix)
    expected, got, fix = (
        "; ".join(f"{key}: {parts[at]}" for key, parts in found.items() if parts[at]) for at in range(3)
    )
    return ConfigError(f"{what}: {', '.join(map(repr, found))} are wrong", expected=expected, got=got, fix=fix)


def nearest(path: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known dotted keys that were most likely meant: none, one, or all of the same name.

    Preferred are keys of the same name elsewhere (`lr` for `optim.lr`), then one spelt alike in the same section,
    then one alike as a whole, then one whose last part is alike.
    """
    key, last, parent = ".".join(path), path[-1], ".".join(path[:-1])
    by_name: dict[str, list[str]] = {}
    for one in known:
        by_name.setdefault(one.rpartition(".")[2], []).append(one)
    if last in by_name:
        return tuple(by_name[last])
    siblings = [one.rpartition(".")[2] for one in known if one.rpartition(".")[0] == parent]
    if close := difflib.get_close_matches(last, siblings, n=1):
        return (f"{parent}.{close[0]}" if parent else close[0],)
    if close := difflib.get_close_matches(key, known, n=1):
        return (close[0],)
    close = difflib.get_close_matches(last, by_name, n=1)
    return tuple(by_name[close[0]]) if close else ()


def _walk(model: type[BaseModel], prefix: str, above: tuple[type[BaseModel], ...]) -> Iterator[str]:
    if model in above:  # a model that contains itself has endlessly many keys
        return
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        yield key
        for nested in _models_in(field.annotation):
            yield from _walk(nested, f"{key}.", (*above, model))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated):
        for argument in typing.get_args(annotation):
            yield from _models_in(argument)


def _data_path(item: ErrorDetails, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Drop the parts of pydantic's location that are no keys of the data: union tags and the like."""
    path: list[str] = []
    inside: Any = data
    for at, part in enumerate(item["loc"]):
        is_last = at == len(item["loc"]) - 1
        if isinstance(inside, Mapping) and part in inside:
            inside = inside[part]
        elif isinstance(inside, Sequence) and not isinstance(inside, str) and isinstance(part, int):
            inside = inside[part] if part < len(inside) else None
        elif not (is_last and item["type"] == "missing"):
            continue
        path.append(str(part))
    return tuple(path)


def _parts(item: ErrorDetails, path: tuple[str, ...], known: Sequence[str]) -> tuple[str, str, str]:
    """Return expected, got and fix."""
    kind, got = item["type"], _shorten(repr(item["input"]))
    if kind == "extra_forbidden":
        parent = ".".join(path[:-1])
        siblings = [one.rpartition(".")[2] for one in known if one.rpartition(".")[0] == parent]
        close = " or ".join(map(repr, nearest(path, known)))
        fix = f"did you mean {close}?" if close else "leave it out"
        return f"one of the keys {', '.join(siblings)}", f"the unknown key {path[-1]!r} = {got}", fix
    if kind == "missing":
        return "a value: the key is required", "nothing", f"set {'.'.join(path)}=..."
    message = item["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = {"an object": "a mapping", "a valid array": "a list"}.get(message, message)
    if kind == "literal_error" and isinstance(item["input"], str):
        choices = [part.strip("' ") for part in item["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        return message, got, did_you_mean(item["input"], choices)
    if isinstance(item["input"], str) and kind.startswith(("int", "float", "bool")):
        plain = "true or false" if kind.startswith("bool") else "a number"
        return message, f"the text {got}", f"write {plain}, without quotes"
    return message, f"{got} ({type(item['input']).__name__})", ""


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
