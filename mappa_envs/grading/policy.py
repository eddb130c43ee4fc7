"""What counts as the right answer where mathematics alone does not say."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class GradingPolicy(BaseModel):
    """The matters of policy in grading a final answer; every default is the usual practice of answer keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    require_box: bool = False
    r"""Whether only a `\boxed{}` answer counts. Otherwise a last "The answer is ..." does too, flagged."""
    choice_letters: str = "ABCDEFGHIJ"
    """An accepted answer that is one of these letters is a multiple choice: `D`, `(D)` and `(D) 7` agree with it.
    Empty: letters are symbols."""
    integer_range: tuple[int, int] | None = None
    """If set, accepted answers and answers are integers in this range, both ends included; AIME has (0, 999)."""
    rounding: Literal["gold_figures", "exact"] = "gold_figures"
    """`gold_figures`: an accepted answer written as a decimal with at least `rounding_figures` significant figures
    is taken as rounded: whatever rounds to it agrees (33.3 and 100/3). `exact`: it is exactly what it says."""
    rounding_figures: int = Field(default=3, ge=1)
    """Shorter accepted decimals are exact: 0.5 is one half. Whole numbers are always exact."""
    decimal_figures: int = Field(default=6, ge=1)
    """A decimal answer to an exact accepted answer that is not an integer needs at least this many significant
    figures, all of them right (0.333333 and 1/3); a decimal that is exactly equal needs none."""
    percent: Literal["either", "number", "fraction"] = "either"
    """What `p%` is worth when only one side has the sign: p (`number`), p/100 (`fraction`) or both (`either`)."""
    units: Literal["ignore", "match"] = "ignore"
    """`ignore`: a unit may be left out or added; two different known units never agree. `match`: units must be
    the same on both sides."""
    unparsable: Literal["incorrect", "undecided"] = "incorrect"
    """Verdict on an answer that cannot be read as mathematics. Running out of time is always undecided."""
    max_chars: int = Field(default=1000, ge=1)
    """A longer answer (without redundant parentheses) is incorrect."""

    @model_validator(mode="after")
    def _check_range(self) -> GradingPolicy:
        if self.integer_range is not None and self.integer_range[0] > self.integer_range[1]:
            raise ValueError(f"integer_range: expected (low, high) with low <= high, got {self.integer_range}")
        return self


DEFAULT_POLICY = GradingPolicy()
AIME_POLICY = GradingPolicy(integer_range=(0, 999), choice_letters="")
"""Answers of the American Invitational Mathematics Examination."""
