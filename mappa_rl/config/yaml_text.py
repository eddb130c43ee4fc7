"""YAML with the core schema only: null, booleans and numbers are what they look like, the rest is text.

PyYAML follows YAML 1.1, where `1e-6` is a string, `no` is false, `12:30` is 750 and `2026-01-01` is a date
object. Here `1e-6` is a number and the others are strings, as YAML 1.2 says. Text written here reads the same
in both.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, ScalarNode

_RESOLVERS: dict[str, tuple[str, str]] = {
    "null": (r"^(?:~|null|Null|NULL|)$", "~nN\0"),
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": (r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    "float": (
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+.0123456789",
    ),
}


class _Loader(yaml.SafeLoader):
    """Reads the core schema."""


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.1 or the core schema would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Loader.yaml_implicit_resolvers = {}
_Dumper.yaml_implicit_resolvers = {k: list(v) for k, v in yaml.SafeDumper.yaml_implicit_resolvers.items()}
for _name, (_pattern, _first) in _RESOLVERS.items():
    for _class in (_Loader, _Dumper):
        _firsts = ["" if char == "\0" else char for char in _first]
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(_pattern), _firsts)


def _mapping(loader: _Loader, node: MappingNode) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise ConstructorError(None, None, f"keys must be text, found {key!r}", key_node.start_mark)
        if key in result:
            raise ConstructorError(None, None, f"the key {key!r} occurs twice", key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


def _integer(loader: _Loader, node: ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:] if base != 10 else text, base)


def _float(loader: _Loader, node: ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def parse(text: str) -> Any:
    """Return the one YAML document of a text: mappings with text keys, lists, scalars; None if empty.

    Raises:
        yaml.YAMLError: On bad syntax, tags, duplicate keys, keys that are not text, or several documents.
    """
    return yaml.load(text, Loader=_Loader)


def block(value: Any) -> str:
    """Return a value as YAML, one key per line."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=100)


def flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    return yaml.dump([value], Dumper=_Dumper, sort_keys=False, default_flow_style=True, width=10**9)[1:-2]
