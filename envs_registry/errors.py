"""The base of every error that this project raises on bad input."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MappaError(Exception):
    """An error that says what was expected, what was got and how to fix it.

    Args:
        what: One sentence that names the thing that is wrong.
        expected: What would have been accepted.
        got: What arrived instead (shown as given; pass `repr(...)` for values).
        fix: What the user can do about it.
    """

    def __init__(self, what: str, *, expected: str = "", got: str = "", fix: str = "") -> None:
        self.what, self.expected, self.got, self.fix = what, expected, got, fix
        parts = [what]
        parts += [f"  expected: {expected}"] if expected else []
        parts += [f"  got: {got}"] if got else []
        parts += [f"  fix: {fix}"] if fix else []
        super().__init__("\n".join(parts))

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the parts when an error crosses a process boundary."""
        return (_rebuild, (type(self), self.what, self.expected, self.got, self.fix))


def did_you_mean(word: object, known: Iterable[str], otherwise: str = "", *, cutoff: float = 0.6) -> str:
    """Return the fix for a misspelt word: "did you mean ...?" with the nearest known one, else `otherwise`.

    Args:
        word: What was given, of any type.
        known: What would have been accepted.
        otherwise: The fix where nothing is near.
        cutoff: Least similarity, 0 to 1, of a word that counts as near.
    """
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}?" if close else otherwise


def _rebuild(cls: type[MappaError], what: str, expected: str, got: str, fix: str) -> MappaError:
    return cls(what, expected=expected, got=got, fix=fix)


class ConfigError(MappaError, ValueError):
    """A configuration key or value is wrong."""


class RegistryError(MappaError):
    """A registration or a lookup cannot be carried out."""


class EnvIdError(RegistryError, ValueError):
    """An id that does not follow the grammar `Namespace/Name-vN`."""


class UnknownEnvError(RegistryError, LookupError):
    """No environment of that namespace, name, version or face is registered."""


class EntryPointError(RegistryError, ImportError):
    """An entry point or the module of a `module:Namespace/Name-vN` id cannot be loaded."""


class PluginWarning(UserWarning):
    """An installed plugin failed to load; its environments are missing."""
