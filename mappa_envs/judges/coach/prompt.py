"""The coach's prompts: versioned text files that a user can override one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

import yaml

from envs_registry.errors import ConfigError, did_you_mean

_BUILT_IN = Path(__file__).parent / "prompts"
_DEFAULT = "v1"
_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "system.txt": frozenset(),
    "user.txt": frozenset(
        {"agent", "role", "duty", "boundary", "task", "earlier", "seen", "action", "tools", "files", "truth", "reply"}
    ),
    "hindsight.txt": frozenset({"later"}),
    "reply_json.txt": frozenset(),
    "reply_text.txt": frozenset(),
    "retry.txt": frozenset({"problem", "reply"}),
}
_NEEDED: Mapping[str, frozenset[str]] = {
    "user.txt": frozenset({"boundary", "action", "reply"}),
    "hindsight.txt": frozenset({"later"}),
}
_DUTIES = "duties.yaml"


@dataclass(frozen=True)
class Prompt:
    """The texts of one version of the prompt."""

    version: str
    """Name and hash of the texts, e.g. `v1-0a1b2c3d`: an edited text is another version."""
    system: str
    user: Template
    """See `prompts/v1/user.txt` for its placeholders; `$name` is replaced in one pass, `$$` is a dollar sign."""
    hindsight: Template
    """What is added before `$reply` when the episode is over: what came after the action."""
    reply_json: str
    """How to reply where the endpoint holds the coach to a JSON schema."""
    reply_text: str
    """How to reply in text."""
    retry: Template
    """What is said to a coach whose reply could not be used."""
    duties: Mapping[str, str]
    """What each duty of a role comes to."""


@cache
def load_prompt(name: str = _DEFAULT) -> Prompt:
    """Read a version of the prompt.

    Args:
        name: A built-in version, or a folder; files that the folder lacks are those of the newest built-in version.

    Raises:
        ConfigError: If there is no such version or folder, or a file of it is malformed.
    """
    folder = _folder(name)
    texts = {file: _read(folder, file) for file in (*_PLACEHOLDERS, _DUTIES)}
    for file, allowed in _PLACEHOLDERS.items():
        _check(folder / file, texts[file], allowed, _NEEDED.get(file, frozenset()))
    digest = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:8]
    return Prompt(
        version=f"{folder.name}-{digest}",
        system=texts["system.txt"].strip(),
        user=Template(texts["user.txt"].strip()),
        hindsight=Template(texts["hindsight.txt"].strip()),
        reply_json=texts["reply_json.txt"].strip(),
        reply_text=texts["reply_text.txt"].strip(),
        retry=Template(texts["retry.txt"].strip()),
        duties=_duties(folder, texts[_DUTIES]),
    )


def _folder(name: str) -> Path:
    built_in = sorted(path.name for path in _BUILT_IN.iterdir() if path.is_dir())
    if name in built_in:
        return _BUILT_IN / name
    folder = Path(name)
    if not folder.is_dir():
        raise ConfigError(
            "unknown prompt",
            expected=f"a built-in version ({', '.join(built_in)}) or a folder of prompt files",
            got=repr(name),
            fix=did_you_mean(name, built_in, "check the path"),
        )
    if unknown := sorted(f.name for f in folder.iterdir() if f.name not in {*_PLACEHOLDERS, _DUTIES}):
        known = [*_PLACEHOLDERS, _DUTIES]
        raise ConfigError(
            f"the prompt folder {name!r} holds a file that is no prompt",
            expected=", ".join(known),
            got=unknown[0],
            fix=did_you_mean(unknown[0], known, "move it elsewhere"),
        )
    return folder.resolve()


def _read(folder: Path, file: str) -> str:
    path = folder / file if (folder / file).is_file() else _BUILT_IN / _DEFAULT / file
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the prompt {str(path)!r} cannot be read", expected="a text file in UTF-8", got=str(error)
        ) from error


def _check(path: Path, text: str, allowed: frozenset[str], needed: frozenset[str]) -> None:
    # Files without placeholders are sent as they are: dollar signs in them mean nothing.
    template = Template(text)
    if allowed and not template.is_valid():
        raise ConfigError(
            f"the prompt {str(path)!r} has a stray dollar sign",
            expected="$name, or $$ for a dollar sign",
            fix="double the dollar sign",
        )
    found = set(template.get_identifiers()) if allowed else set()
    for name in sorted(found - allowed):
        raise ConfigError(
            f"the prompt {str(path)!r} has an unknown placeholder",
            expected=", ".join(f"${known}" for known in sorted(allowed)),
            got=f"${name}",
            fix=did_you_mean(name, allowed, "remove it, or write $$ for a dollar sign"),
        )
    if missing := sorted(needed - found):
        raise ConfigError(f"the prompt {str(path)!r} lacks ${missing[0]}", fix=f"put ${missing[0]} where it belongs")


def _duties(folder: Path, text: str) -> dict[str, str]:
    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        data = " ".join(str(error).split())
    if not isinstance(data, dict) or not all(isinstance(x, str) for pair in data.items() for x in pair):
        raise ConfigError(
            f"the prompt file {str(folder / _DUTIES)!r} is malformed",
            expected="lines 'duty: what it comes to'",
            got=str(data)[:200],
        )
    return {duty: text.strip() for duty, text in data.items()}
