"""Normal form of statements, and stable shares of strings: what splits and overlap checks rest on."""

from __future__ import annotations

import hashlib
import unicodedata


def normalise_statement(text: str) -> str:
    """Lower-case `text` in Unicode form NFKC with every run of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def stable_share(text: str, salt: str = "") -> float:
    """Map a string to a number in [0, 1) that looks uniform and is the same in every process.

    Args:
        text: Any text that UTF-8 can encode.
        salt: Another salt gives an unrelated number.
    """
    digest = hashlib.sha256(f"{salt}\0{text}".encode()).digest()
    # 53 bits are what a float holds exactly.
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
