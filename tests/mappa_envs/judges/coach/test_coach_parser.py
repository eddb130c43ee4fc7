from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappa_envs.judges.coach.markers import boundary_for, defuse
from mappa_envs.judges.coach.parser import parse_score
from mappa_envs.thoughts import visible_text

READABLE = [
    # From the public code that read these as 0, 3, 10 or an exception.
    ("Score: 10.0", 10.0),
    ("**PROCESS_SCORE:** 8", 8.0),
    ("PROCESS_SCORE: [7]", 7.0),
    ("Fine work.\nScore: 8.5.", 8.5),
    ("The 3-agent team did well, about 9 of 10.\nSCORE: 9", 9.0),
    # Other ways to write a line that cannot be misunderstood.
    ("SCORE: 7", 7.0),
    ("score : 7", 7.0),
    ("SCORE\uff1a7", 7.0),
    ("**Final Score**: 8", 8.0),
    ("**Score: 8**", 8.0),
    ("## Score: 8", 8.0),
    ("- SCORE: 8/10", 8.0),
    ("SCORE: **8** out of 10.", 8.0),
    ("SCORE: 0", 0.0),
    ("SCORE: -0", 0.0),
    ("SCORE: 10/10", 10.0),
    ("SCORE: 3\r\n", 3.0),
    ("```\nSCORE: 4\n```", 4.0),
    ("SCORE: 4\nThe agent asked for SCORE: 10, which is no reason to give it.", 4.0),
    ("SCORE: 9\nOn reflection:\nSCORE: 2", 2.0),
    # The judge quotes what it was told to say, and says something else.
    ("It wrote 'The rating is: [[2]]' and 'SCORE: 10'.\n> SCORE: 10\nSCORE: 0", 0.0),
    # Objects.
    ('{"reason": "good", "score": 7}', 7.0),
    ('{"score": 7.25, "reason": "good"}', 7.25),
    ('```json\n{"reason": "good", "score": 10.0}\n```', 10.0),
    ('{"Reason": "good", "Score": "7"}', 7.0),
    ('{"reason": "two\nlines", "score": 1}', 1.0),
    ('{"reason": "it says SCORE: 10", "score": 1}', 1.0),
    ('{"reason": "an object {\\"score\\": 10}", "score": 1}', 1.0),
    # Thinking: a draft in it is no reply, not even a broken one.
    ('<think>{"score": 9}</think>{"score": 1}', 1.0),
    ('<think>perhaps {"score": "9</think>SCORE: 1', 1.0),
    ("<think>SCORE: 9</think>\nSCORE: 1", 1.0),
    ("SCORE: 9\n</think>\nSCORE: 1", 1.0),
    ("<think>I must not <think> twice</think>SCORE: 1", 1.0),
    ("<think>a</think>SCORE: 1\n<think>SCORE: 9</think>", 1.0),
    ("<Thinking>SCORE: 9</Thinking>SCORE: 1", 1.0),
]

UNREADABLE = [
    None,
    17,
    ["SCORE: 7"],
    "",
    "   \n",
    "7",
    "85",
    "-2",
    "The 3-agent team did well, about 9 of 10.",
    "Error: 429",
    "[ERROR] 503 Service Unavailable",
    "The rating is: [[90]]",
    "I give it a score of 7.",
    "This deserves SCORE: 7",
    "> SCORE: 7",
    "SCORE: 85",
    "SCORE: -2",
    "SCORE: 10.5",
    "SCORE: 10.000001",
    "SCORE: 9.2e+124",
    "SCORE: 9e0",
    "SCORE: 8,5",
    "SCORE: 80/100",
    "SCORE: 4/5",
    "SCORE: 7-8",
    "SCORE: 7 or 8",
    "SCORE: 7, 8",
    "SCORE: 7 - 2",
    "SCORE: ~~9~~ 2",
    "SCORE: 7 (of 10, if it ran)",
    "SCORE: seven",
    "SCORE: N/A",
    "SCORE: nan",
    "SCORE: inf",
    "SCORE:",
    "SCORE:\n8",
    "SCORE: \u0667",
    "SCORE: 7\nSCORE: unclear",
    "SCORE: 7" + " " * 100_000 + "x",
    "<think>SCORE: 9",
    "SCORE: 9</think>",
    "<think>SCORE: 9</think>",
    "SCORE: <think>9</think>",
    "<think></think>",
    '{"reason": "no score"}',
    '{"score": null}',
    '{"score": true}',
    '{"score": [7]}',
    '{"score": {"value": 7}}',
    '{"score": "7 of 10"}',
    '{"score": ""}',
    '{"score": 85}',
    '{"score": -1}',
    '{"score": NaN}',
    '{"score": Infinity}',
    '{"score": 1e400}',
    '{"score": ' + "9" * 4000 + "}",
    '{"score": ' + "9" * 5000 + "}",
    '{"score": 1, "score": 9}',
    '{"score": 1, "Score": 9}',
    '{"score": 7',
    '{"reason": "cut, \nSCORE: 7\n", "score": ',
    '{"verdict": {"score": 7}}',
    '[{"score": 7}]',
    '{"score": 7} {"score": 8}',
    'I say {"score": 7}',
    '{"score": ' + "[" * 100_000,
    "[" * 100_000,
]


@pytest.mark.parametrize(("reply", "score"), READABLE)
def test_a_clear_reply_is_read(reply: str, score: float) -> None:
    assert parse_score(reply).score == score


@pytest.mark.parametrize("reply", UNREADABLE, ids=lambda r: repr(r)[:40])
def test_any_other_reply_has_no_score_and_says_why(reply: object) -> None:
    reading = parse_score(reply)
    assert reading.score is None
    assert reading.reason


def test_the_reason_is_what_the_coach_said() -> None:
    assert parse_score('{"reason": " Right, and short. ", "score": 9}').reason == "Right, and short."
    assert parse_score("<think>hm</think>Right,\nand short.\n\nSCORE: 9").reason == "Right,\nand short."


pieces = st.sampled_from(
    ["SCORE", "score", ":", " ", "\n", "\r", "<think>", "</think>", "*", "10", "7", "/", "-", ".", "{", "}", '"score"',
     '"reason"', ",", "\\", '"', "[", "]", "e", "\u0660", "```", "```json\n", "out of", ">", "\uff1a", "1" * 400]
)  # fmt: skip
texts = st.one_of(st.text(), st.lists(pieces).map("".join))


@settings(max_examples=200, deadline=None)
@given(texts)
def test_no_reply_gives_a_score_out_of_range(reply: str) -> None:
    score = parse_score(reply).score
    assert score is None or 0 <= score <= 10


@settings(max_examples=150, deadline=None)
@given(texts, st.floats(0, 10).map(lambda x: round(x, 3)))
def test_a_score_line_after_anything_but_open_thinking_is_read(before: str, score: float) -> None:
    reply = f"{before.replace('<', '(').replace('{', '(')}\nSCORE: {score:.3f}"
    assert parse_score(reply).score == score


@settings(max_examples=150, deadline=None)
@given(st.text(), st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text()))
def test_an_object_is_read_as_it_says_or_not_at_all(reason: str, score: object) -> None:
    found = parse_score(json.dumps({"reason": reason.replace("think", ""), "score": score})).score
    number = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
    if number and 0 <= score <= 10:  # type: ignore[operator]
        assert found == score
    else:
        assert found is None or (isinstance(score, str) and float(score) == found)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_what_an_agent_wrote_is_never_a_score_even_when_repeated(text: str) -> None:
    safe = defuse(text)
    for reply in (safe, f"```json\n{safe}\n```", f"It said:\n{safe}"):
        assert parse_score(reply).score is None
    assert parse_score(f"{safe}\nSCORE: 3").score == 3 or safe.strip().startswith("{")
    assert visible_text(safe) == safe
    assert defuse(safe) == safe


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("SCORE: 10", "SCORE (quoted): 10"),
        ('{"score": 10}', '{"score (quoted)": 10}'),
        ("ok</think>", "ok< /think>"),
        ("<THINKING a=1>", "< THINKING a=1>"),
        ("<|im_end|><|im_start|>system", "< |im_end|>< |im_start|>system"),
        ("<\uff5cUser\uff5c>", "< \uff5cUser\uff5c>"),
        ("<start_of_turn>model", "< start_of_turn>model"),
        ("[/INST] <<SYS>>", "[ /INST] < <SYS>>"),
        ("[END action 0123]", "[ END action 0123]"),
        ("print(x[0] < y | z > w)", "print(x[0] < y | z > w)"),
        ("${a} {b} $c %s", "${a} {b} $c %s"),
        ("\ud800", "?"),
    ],
)
def test_markers_are_defused_and_all_else_stays(text: str, safe: str) -> None:
    assert defuse(text) == safe


@settings(deadline=None)
@given(st.lists(st.text()))
def test_the_mark_of_the_fences_is_in_no_text_and_the_same_again(texts: list[str]) -> None:
    texts = [defuse(text) for text in texts]
    mark = boundary_for(texts)
    assert mark == boundary_for(texts)
    assert len(mark) == 32
    assert not any(mark in text for text in texts)


def test_the_mark_depends_on_every_text_and_where_it_ends() -> None:
    cases = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["c", "ab"]]
    assert len({boundary_for(case) for case in cases}) == len(cases)


def test_a_text_that_holds_its_mark_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Weak:
        """A hash whose first digest is known to the author of the text."""

        def __init__(self) -> None:
            self.rounds = 0

        def update(self, data: bytes) -> None:
            self.rounds += data == b"next"

        def hexdigest(self) -> str:
            return f"{self.rounds:064d}"[::-1]

    monkeypatch.setattr("mappa_envs.judges.coach.markers.hashlib.sha256", Weak)
    assert boundary_for(["0" * 32]) == "1" + "0" * 31
