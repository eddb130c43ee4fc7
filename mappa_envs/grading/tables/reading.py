"""From bytes that agents wrote to rows of text cells, with bounds on time and memory and no guesses."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from mappa_envs.grading.tables.faults import Fault

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_CELL_CHARS = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """What was read."""

    ids: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    """One tuple per row, in the order of the asked columns, stripped of white space."""
    faults: tuple[Fault, ...] = ()


def read_rows(data: bytes, id_column: str, columns: Sequence[str], max_rows: int) -> Rows:
    """Read a comma-separated file with a header; column order is free.

    Quoted cells hold no line breaks, lines have a bounded length, and reading stops for good after `max_rows` lines
    below the header, blank ones too: a longer file is a fault, never a shorter file.

    Args:
        data: UTF-8, with LF, CR or CRLF.
        id_column: Name of the id column.
        columns: Names of the other columns.
        max_rows: Largest number of rows that is read.
    """
    notes: list[Fault] = []
    if data.startswith(_UTF8_BOM):
        data = data[len(_UTF8_BOM) :]
        notes.append(Fault("bom", "the file begins with a byte order mark"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "UTF-16" if data.startswith(_UTF16_BOMS) else f"byte {data[error.start]:#04x} at {error.start}"
        return Rows(faults=(*notes, Fault("encoding", f"the file is not UTF-8: {what}")))
    lines = _Lines(text, max_rows + 1, (len(columns) + 1) * _CELL_CHARS + 1024)
    # strict: an unclosed quote is an error, not a cell with the rest of the file.
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in _next_row(reader, lines) or []]
        wrong = _header_faults(header, [id_column, *columns])
        if wrong:
            return Rows(faults=(*notes, *wrong))
        places = [header.index(name) for name in (id_column, *columns)]
        ids: list[str] = []
        cells: list[tuple[str, ...]] = []
        while (row := _next_row(reader, lines)) is not None:
            if len(row) != len(header):
                raise csv.Error(f"{len(row)} cells under {len(header)} columns")
            first, *rest = (row[place].strip() for place in places)
            ids.append(first)
            cells.append(tuple(rest))
    except _TooManyLines:
        fault = Fault("too_many_rows", f"more than {max_rows} rows; none was graded", max_rows + 1)
        return Rows(faults=(*notes, fault))
    except csv.Error as error:
        return Rows(faults=(*notes, Fault("malformed", f"line {lines.number}: {error}")))
    if not ids:
        notes.append(Fault("empty", "the file has no rows"))
    return Rows(tuple(ids), tuple(cells), tuple(notes))


class _TooManyLines(Exception):
    """The text has more lines than are read."""


class _Lines:
    """Lines of a text for `csv.reader`; refuses long lines, rows of several lines and too many lines."""

    def __init__(self, text: str, max_lines: int, max_chars: int) -> None:
        self._stream = io.StringIO(text, newline=None)
        self._max_lines = max_lines
        self._max_chars = max_chars
        self._fresh = True
        self.number = 0

    def row_begins(self) -> None:
        self._fresh = True

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if not self._fresh:
            raise csv.Error("a quote is not closed on its line")
        line = self._stream.readline(self._max_chars + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._fresh = False
        if self.number > self._max_lines:
            raise _TooManyLines
        if len(line) > self._max_chars:
            raise csv.Error(f"a line of more than {self._max_chars} characters")
        return line


def _next_row(reader: object, lines: _Lines) -> list[str] | None:
    """Return the next row that is not blank, None at the end."""
    while True:
        lines.row_begins()
        row: list[str] | None = next(reader, None)  # type: ignore[call-overload]
        if row is None or len(row) > 1 or any(cell.strip() for cell in row):
            return row


def _header_faults(header: list[str], wanted: list[str]) -> list[Fault]:
    if not header:
        return [Fault("empty", "the file has no header")]
    if len(header) == 1 and len(wanted) > 1:
        for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars"), (" ", "spaces")):
            if set(wanted) <= {part.strip().strip('"') for part in header[0].split(mark)}:
                return [Fault("delimiter", f"the columns are separated by {name}, not commas")]
    faults = []
    known = set(wanted)
    for code, what, names in (
        ("missing_column", "no column", [name for name in wanted if name not in header]),
        ("extra_column", "unasked column", [name for name in dict.fromkeys(header) if name not in known]),
        ("duplicate_column", "twice the column", [n for n in dict.fromkeys(header) if header.count(n) > 1]),
    ):
        if names:
            shown = ", ".join(repr(name[:40]) for name in names[:3]) + (", ..." if len(names) > 3 else "")
            faults.append(Fault(code, f"{what} {shown}", len(names)))
    return faults
