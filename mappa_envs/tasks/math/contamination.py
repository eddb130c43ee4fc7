"""Finding evaluation problems that are also training problems.

Two statements overlap if they are equal up to formatting, or nearly so (character n-grams) with the same numbers and
the same answer. Nearly equal text alone is not enough: competitions reuse wordings for different problems. Such pairs
are reported apart, as look-alikes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mappa_envs.errors import ConfigError
from mappa_envs.tasks.math.base import MathTask
from mappa_envs.tasks.math.finite import FiniteSource

_FIGURE = re.compile(r"\[asy\].*?\[/asy\]", re.DOTALL)
_FORMATTING = re.compile(
    r"\\(?:left|right|big|bigl|bigr|Big|displaystyle|textstyle|limits|text|mathrm|textbf|textit|emph|mbox|quad|qquad|"
    r"ldots|dots|cdots)(?![A-Za-z])|\\[,;:!() \[\]]|[$~{}\s]|\.\.\."
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """A training and an evaluation problem whose statements are the same or nearly so."""

    train_id: str
    eval_id: str
    similarity: float
    """Shared share of the character n-grams of both (Jaccard index), 0 to 1; 1 for equal statements."""
    same_answer: bool


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """What `check_contamination` found."""

    verbatim: tuple[Overlap, ...]
    """Pairs with equal statements up to formatting, whatever their answers."""
    near: tuple[Overlap, ...]
    """Pairs with nearly equal statements, the same numbers and the same answer."""
    look_alikes: tuple[Overlap, ...]
    """The nearest pair of each other evaluation problem with nearly equal text: probably different "
    "problems."""
    train_size: int
    eval_size: int

    @property
    def eval_ids(self) -> tuple[str, ...]:
        """Ids of the evaluation problems that are also training problems."""
        return tuple(dict.fromkeys(pair.eval_id for pair in self.verbatim + self.near))

    @property
    def train_ids(self) -> tuple[str, ...]:
        """Ids of the training problems that are also evaluation problems."""
        return tuple(dict.fromkeys(pair.train_id for pair in self.verbatim + self.near))

    @property
    def clean(self) -> bool:
        """Whether no evaluation problem is a training problem."""
        return not self.verbatim and not self.near

    def summary(self) -> str:
        """Say in a few lines what was found, naming the evaluation ids."""
        lines = [
            f"{len(self.eval_ids)} of {self.eval_size} evaluation problems are among {self.train_size} "
            "training problems"
        ]
        for title, pairs in (("verbatim", self.verbatim), ("nearly", self.near), ("look-alikes", self.look_alikes)):
            if pairs:
                named = ", ".join(f"{pair.eval_id} = {pair.train_id}" for pair in pairs)
                lines.append(f"  {title}: {named.replace(' = ', ' ~ ') if title == 'look-alikes' else named}")
        return "\n".join(lines)


def check_contamination(
    train: FiniteSource | Sequence[MathTask],
    evaluation: FiniteSource | Sequence[MathTask],
    *,
    ngram: int = 8,
    threshold: float = 0.3,
) -> ContaminationReport:
    """Compare every evaluation problem with every training problem.

    Args:
        train: Training problems.
        evaluation: Evaluation problems.
        ngram: Length of the character n-grams, over letters and digits only; at least 2.
        threshold: Similarity (Jaccard index of the n-gram sets) from which statements count as nearly equal, above 0
            and at most 1.

    Raises:
        ConfigError: If `ngram` or `threshold` is out of range.
    """
    if isinstance(ngram, bool) or not isinstance(ngram, int) or ngram < 2:
        raise ConfigError("check_contamination: bad ngram", expected="an integer of at least 2", got=repr(ngram))
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise ConfigError("check_contamination: bad threshold", expected="above 0, at most 1", got=repr(threshold))
    known = _Index(_tasks(train), ngram)
    verbatim: list[Overlap] = []
    near: list[Overlap] = []
    look_alikes: list[Overlap] = []
    tasks = _tasks(evaluation)
    for task in tasks:
        seen = _Statement.of(task, ngram)
        same = known.equal(seen)
        verbatim += [_overlap(other, seen, 1.0) for other in same]
        nearly = [pair for pair in known.similar(seen, threshold) if pair[0].text != seen.text]
        copies = [
            (other, share) for other, share in nearly if other.numbers == seen.numbers and other.answers & seen.answers
        ]
        near += [_overlap(other, seen, share) for other, share in copies]
        if nearly and not same and not copies:
            other, share = max(nearly, key=lambda pair: pair[1])
            look_alikes.append(_overlap(other, seen, share))
    return ContaminationReport(tuple(verbatim), tuple(near), tuple(look_alikes), len(known.statements), len(tasks))


def _tasks(source: FiniteSource | Sequence[MathTask]) -> tuple[MathTask, ...]:
    return source.tasks if isinstance(source, FiniteSource) else tuple(source)


@dataclass(frozen=True, slots=True)
class _Statement:
    id: str
    text: str
    grams: frozenset[str]
    numbers: tuple[str, ...]
    answers: frozenset[Fraction | str]

    @classmethod
    def of(cls, task: MathTask, ngram: int) -> _Statement:
        text = unicodedata.normalize("NFKC", _FIGURE.sub(" ", task.prompt)).casefold()
        plain = _FORMATTING.sub("", text.replace("dfrac", "frac").replace("tfrac", "frac"))
        letters = re.sub(r"[\W_]+", "", plain)
        grams = frozenset(letters[i : i + ngram] for i in range(max(1, len(letters) - ngram + 1)))
        numbers = tuple(sorted(re.findall(r"\d+", text)))
        return cls(task.id, plain, grams, numbers, frozenset(_answer_key(answer) for answer in task.answers))


class _Index:
    """Training statements by text and by n-gram."""

    def __init__(self, tasks: Sequence[MathTask], ngram: int) -> None:
        self.statements = [_Statement.of(task, ngram) for task in tasks]
        self._by_text: dict[str, list[_Statement]] = defaultdict(list)
        self._by_gram: dict[str, list[int]] = defaultdict(list)
        for position, statement in enumerate(self.statements):
            self._by_text[statement.text].append(statement)
            for gram in statement.grams:
                self._by_gram[gram].append(position)

    def equal(self, seen: _Statement) -> list[_Statement]:
        return self._by_text.get(seen.text, [])

    def similar(self, seen: _Statement, threshold: float) -> list[tuple[_Statement, float]]:
        shared = Counter(position for gram in seen.grams for position in self._by_gram.get(gram, ()))
        found = []
        for position, count in sorted(shared.items()):
            other = self.statements[position]
            share = count / (len(seen.grams) + len(other.grams) - count)
            if share >= threshold:
                found.append((other, share))
        return found


def _overlap(other: _Statement, seen: _Statement, share: float) -> Overlap:
    return Overlap(other.id, seen.id, round(share, 4), bool(other.answers & seen.answers))


def _answer_key(answer: str) -> Fraction | str:
    r"""Bring answers to a form in which `080`, `80.0` and `80^\circ` are equal."""
    text = re.sub(r"\\circ|[\s$^{}]", "", answer)
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text
