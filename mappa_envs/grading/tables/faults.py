"""What can be wrong with a submission, by name."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

FATAL_CODES = MappingProxyType(
    {
        "missing_file": "no submission was handed in",
        "too_large": "the file has more bytes than any honest submission",
        "too_many_rows": "far more rows than the test set; nothing of them was graded",
        "encoding": "the bytes are not UTF-8",
        "malformed": "a line is no CSV: ragged, endless, or with broken quotes",
        "empty": "there is a header, or nothing at all, but no row",
        "delimiter": "the columns are not separated by commas",
        "missing_column": "a required column is not there",
        "extra_column": "a column that was not asked for",
        "duplicate_column": "a column name occurs twice",
        "missing_id": "test rows without a prediction",
        "duplicate_id": "an id with several predictions",
        "unknown_id": "ids that are not in the test set",
        "missing_value": "a prediction is blank or NaN",
        "infinite_value": "a prediction is infinite, or beyond 1e100 in size",
        "formula": "a cell is a spreadsheet formula; formulas are never evaluated",
        "not_a_number": "a prediction is not a number where one is required",
        "negative_value": "a negative prediction where the metric takes logarithms",
        "unknown_label": "a label that is no class of this task",
        "too_many_labels": "more than k ranked labels in a cell",
        "not_a_probability": "a probability is below 0 or above 1",
        "not_a_distribution": "the probabilities of a row do not sum to 1",
    }
)
"""Faults that make a submission invalid."""

NOTE_CODES = MappingProxyType({"bom": "the file begins with a byte order mark, which is ignored"})
"""Faults that leave a submission valid."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a submission."""

    code: str
    """A key of `FATAL_CODES` or `NOTE_CODES`."""
    message: str
    """What was found, with an example; safe to show to anyone: it names no hidden label."""
    count: int = 1
    """How many rows, ids or columns are affected."""

    @property
    def fatal(self) -> bool:
        """Whether the submission is invalid because of it."""
        return self.code in FATAL_CODES
