"""The grammar of environment ids: `Namespace/Name-vN`, valid in PettingZoo and in Gymnasium alike."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envs_registry.errors import EnvIdError

GRAMMAR = "Namespace/Name-vN, of ASCII letters, digits, '_', '-' (and '.' in Name), e.g. 'Mappa/MathChat-v0'"

# ASCII only and no ':': Gymnasium splits ids at ':', PettingZoo's namespaces have none. No leading zeros:
# the two registries disagree on whether v01 is v1. At most nine digits: int() refuses very long ones.
_ID = re.compile(r"(?P<namespace>[A-Za-z0-9_-]+)/(?P<name>[A-Za-z0-9_.-]+?)(?:-v(?P<version>0|[1-9][0-9]{0,8}))?")
# PettingZoo reads a trailing `_vN` as a version too.
_VERSION_LIKE = re.compile(r".*[-_]v[0-9]*")


@dataclass(frozen=True, slots=True, order=True)
class EnvId:
    """An id in its parts."""

    namespace: str
    name: str
    version: int | None
    """None stands for the newest version."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" + ("" if self.version is None else f"-v{self.version}")


def parse_id(text: str, *, versioned: bool = False) -> EnvId:
    """Split an id into its parts.

    Args:
        text: `Namespace/Name-vN`, or `Namespace/Name` for the newest version.
        versioned: Whether the version must be there, as it must in a registration.

    Raises:
        EnvIdError: If `text` does not follow the grammar.
    """
    match = _ID.fullmatch(text) if isinstance(text, str) else None
    if match is None or _VERSION_LIKE.fullmatch(match["name"]):
        raise EnvIdError("not an environment id", expected=GRAMMAR, got=repr(text))
    if match["version"] is None:
        if versioned:
            raise EnvIdError(
                "an environment is registered with its version",
                expected=GRAMMAR,
                got=repr(text),
                fix=f"register {text + '-v0'!r}",
            )
        return EnvId(match["namespace"], match["name"], None)
    return EnvId(match["namespace"], match["name"], int(match["version"]))


def split_module(text: str) -> tuple[str | None, str]:
    """Split `module:Namespace/Name-vN` into the module (None when there is none) and the id."""
    if not isinstance(text, str) or ":" not in text:
        return None, text
    module, _, rest = text.partition(":")
    return module, rest
