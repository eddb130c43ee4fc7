from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.grading.answers import extract_answer
from mappa_envs.grading.extract import Extraction
from mappa_envs.grading.policy import GradingPolicy

BOXED = [
    (r"so \boxed{12}.", "12", 1),
    (r"\boxed{\frac{1}{2}} done", r"\frac{1}{2}", 1),
    (r"\boxed{\{1,2\}}", r"\{1,2\}", 1),
    (r"\boxed{\left\{1\right.}", r"\left\{1\right.", 1),
    (r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}", r"\begin{pmatrix}1\\2\end{pmatrix}", 1),
    (r"\boxed {7} and \fbox{8} done", "7, 8", 2),
    (r"first \boxed{4}, no wait: \boxed{5}", "5", 2),
    (r"\boxed{\boxed{6}}", r"\boxed{6}", 1),
    (r"\boxed{5", None, 0),
    (r"\boxed{4} and then \boxed{5", None, 1),
    (r"{ never closed \boxed{5}", "5", 1),
    (r"closed too often } \boxed{5} }", "5", 1),
    (r"$\boxed 7$", "7", 1),
    (r"\boxed{5}. <think>or \boxed{6}?</think>", "5", 1),
    (r"<think>\boxed{6}</think> \boxed{5}", "5", 1),
    (r"\boxed{6}</think> \boxed{5}", "5", 1),
    (r"\boxed{5} <think> \boxed{6}", "5", 1),
    (r"\boxed{}", "", 1),
]


@pytest.mark.parametrize(("text", "answer", "count"), BOXED)
def test_the_last_closed_box_outside_thinking_is_the_answer(text: str, answer: str | None, count: int) -> None:
    found = extract_answer(text)
    assert (found.text, found.count) == (answer, count)
    assert found.boxed == (answer is not None)


def test_an_unclosed_last_box_is_flagged_as_truncated() -> None:
    assert extract_answer(r"The answer is \boxed{5") == Extraction(None, False, 0, truncated=True)


@pytest.mark.parametrize(
    ("text", "answer", "several"),
    [
        (r"\boxed{5} or \boxed{6} or \boxed{7}", "5, 6, 7", True),
        (r"\boxed{5}, \boxed{6}", "5, 6", True),
        (r"$\boxed{5}$ and $\boxed{6}$", "5, 6", True),
        ("\\boxed{840}\n\n\\boxed{840}", "840", False),
        (r"\boxed{5} is wrong, \boxed{6}", "6", False),
    ],
)
def test_boxes_side_by_side_are_one_answer_of_several_parts(text: str, answer: str, several: bool) -> None:
    found = extract_answer(text)
    assert (found.text, found.several) == (answer, several)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 12.", "12"),
        ("The answer is 12.5. I hope so.", "12.5"),
        ("The final answer to the problem is $\\frac{1}{2}$.", "$\\frac{1}{2}$"),
        ("**Answer:** 7\nmore", "7"),
        ("The answer is 3. No: the answer is 4.", "4"),
        ("<answer>9</answer>", "9"),
        ("42", "42"),
        ("I do not know.", None),
        ("There are 12 of them, so we are done and this is a long sentence without the word.", None),
        ("", None),
    ],
)
def test_an_unboxed_answer_is_found_but_flagged(text: str, answer: str | None) -> None:
    found = extract_answer(text)
    assert (found.text, found.boxed, found.count) == (answer, False, 0)


def test_policy_can_demand_a_box() -> None:
    assert extract_answer("The answer is 12.", policy=GradingPolicy(require_box=True)).text is None


@given(st.text(alphabet="abc{}\\ $", max_size=30).filter(lambda text: "\\" not in text[-1:]), st.integers(0, 10**9))
def test_a_box_at_the_end_is_found_after_any_prose(prose: str, number: int) -> None:
    text = f"{prose}\nHence \\boxed{{{number}}}"
    found = extract_answer(text)
    # Prose may hold an open box of its own, which then contains this one or leaves the text truncated.
    assert found.text == str(number) or "\\boxed" in prose


@given(st.text(max_size=300))
def test_any_text_has_an_extraction(text: str) -> None:
    found = extract_answer(text)
    assert found.count >= 0
    assert found.text is not None or not found.boxed


@pytest.mark.parametrize(
    "text",
    [
        "word " * 800_000 + "\\boxed{5}",
        "\\boxed{" * 200_000,
        "\\boxed{" * 100_000 + "}" * 100_000,
        "\\boxed{1}" * 100_000,
        "<think></think>" * 150_000 + "\\boxed{5}",
        "{" * 1_000_000,
        "}" * 1_000_000,
        "\\" * 1_000_000,
        "answer " * 300_000,
        "answer is" + " " * 1_000_000,
        "answer" + " " * 1_000_000,
        "the answer to " * 100_000,
        "<answer>" * 100_000,
        "\\boxed{1}" + " " * 1_000_000 + "\\boxed{2}",
        "\\boxed" + " " * 1_000_000,
    ],
    ids=lambda text: f"{text[:16]!r}x{len(text)}",
)
@pytest.mark.timeout(20)
def test_megabytes_are_searched_in_linear_time(text: str) -> None:
    # Quadratic work on these lengths takes hours; the timeout is the test.
    extract_answer(text)
