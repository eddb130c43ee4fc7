"""The gallery of procedural families: `python -m mappa_envs.tasks.math.gallery [path]` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mappa_envs.tasks.math.families import FAMILIES, MAX_LEVEL, Family

DEFAULT_PATH = Path("docs/gallery.md")


def gallery_markdown() -> str:
    """Return the gallery: one example with its answer for each family and level, by topic."""
    lines = [
        "# Gallery of procedural maths problems",
        "",
        f"{len(FAMILIES)} families in {MAX_LEVEL} levels, one example each. Written by "
        "`python -m mappa_envs.tasks.math.gallery`; do not edit by hand.",
    ]
    for topic in dict.fromkeys(family.topic for family in FAMILIES.values()):
        lines += ["", f"## {topic.replace('_', ' ').capitalize()}"]
        for family in FAMILIES.values():
            if family.topic == topic:
                lines += ["", f"### `{family.name}`", "", family.summary, "", *_table(family)]
    return "\n".join(lines) + "\n"


def _table(family: Family) -> list[str]:
    rows = ["| level | problem | answer |", "|---|---|---|"]
    for level in range(1, MAX_LEVEL + 1):
        problem = family.make(np.random.default_rng(np.random.SeedSequence([2026, level])), level)
        rows.append(f"| {level} | {_cell(problem.prompt)} | `{problem.answer}` |")
    return rows


def _cell(text: str) -> str:
    for char in "\\|*_^<>$[]":
        text = text.replace(char, "\\" + char)
    return text


def main(arguments: list[str]) -> int:
    """Write the gallery to the path given, `docs/gallery.md` by default; return the exit status."""
    if len(arguments) > 1:
        print("usage: python -m mappa_envs.tasks.math.gallery [path]", file=sys.stderr)
        return 2
    path = Path(arguments[0]) if arguments else DEFAULT_PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(gallery_markdown(), encoding="utf-8", newline="\n")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
