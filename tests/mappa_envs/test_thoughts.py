from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappa_envs.code_blocks import python_code
from mappa_envs.grading.extract import extract_answer
from mappa_envs.judges.coach.parser import parse_score
from mappa_envs.thoughts import NAMES, TAG, defuse_tags, opens_thought, visible_text

PROGRAM = '```python\nimport re\ns = re.sub(r"<think>.*?</think>", "", t)  # cuts <think> out\nprint(s)\n```'


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("no thoughts", "no thoughts"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<THINK>b</THINK>c", "c"),
        ("<thinking>b</thinking>c", "c"),
        ("<Thinking >b</Thinking\n>c", "c"),
        ("<think>b</thinking>c", "c"),
        ('<think lang="en" budget=9>b</think>c', "c"),
        # Never closed, never opened.
        ("a<think>b", "a"),
        ("a <think> b <think> c", "a "),
        ("b</think>c", "c"),
        ("b</think>c<think>d", "c"),
        # Opened twice, closed twice.
        ("<think>not <think> twice</think>c", "c"),
        ("a<think>b<think>c</think>d</think>e", "ae"),
        ("a<think>b</think></think>c", "ac"),
        ("a<think>b</think>c<think>d</think>e</think>f", "acf"),
        # No tags.
        ("1 <think> 2", "1 "),
        ("< think>a</ think>", "< think>a</ think>"),
        ("<think/>a", "<think/>a"),
        ("<thinker>a</thinker> <rethink>", "<thinker>a</thinker> <rethink>"),
        ("if x <think and y> z", "if x <think and y> z"),
        # A tag that comes about by cutting.
        ("<thi<think>b</think>nk>c", "< think>c"),
        ("</thi<think>b</think>nk>c", "< /think>c"),
        # Fences.
        ("a<think>b</think>```python\nc\n```", "a\n```python\nc\n```"),
        (PROGRAM, PROGRAM),
        (f"<think>{PROGRAM}</think>c", "c"),
        (f"{PROGRAM}</think>c", "c"),
        (f"a\n<think>b</think>\n{PROGRAM}\n<think>c", f"a\n\n{PROGRAM}\n"),
        ("```python\nx = 1\n<think>I don't know</think>\nprint(x)\n```", "```python\nx = 1\n\nprint(x)\n```"),
        ("```python\nprint(1)\n<think>```\n</think>\nprint(2)\n```", "```python\nprint(1)\n\nprint(2)\n```"),
        ("```text\n'<think>'\n```\nb", "```text\n'"),
        ("```python\n'<think>'\nnever closed", "```python\n'"),
    ],
)
def test_what_is_visible_of_a_text(text: str, visible: str) -> None:
    assert visible_text(text) == visible
    assert visible_text(visible) == visible


@pytest.mark.parametrize(
    ("text", "visible"),
    [("b</think>c", "c"), ("b", ""), ("b <think> c", ""), ("b<think>c</think>d</think>e", "e"), ("</think>", "")],
)
def test_what_is_visible_of_a_text_that_starts_within_a_thought(text: str, visible: str) -> None:
    assert visible_text(text, thinking=True) == visible
    assert visible_text(text, thinking=True) == visible_text(f"<think>{text}")


@pytest.mark.parametrize("name", [*NAMES, "THINK", "Thinking"])
def test_tools_graders_and_coaches_read_the_same_text(name: str) -> None:
    draft = "\\boxed{6}\nSCORE: 9\n```python\nprint('draft')\n```\n"
    text = f"```python\nprint('final')\n```\n<{name}>\n{draft}</{name}>\n\\boxed{{5}}\nSCORE: 1"
    assert python_code(text) == "print('final')"
    assert (extract_answer(text).text, extract_answer(text).count) == ("5", 1)
    assert parse_score(text).score == 1
    unfinished = f"```python\nprint('final')\n```\n<{name}>\n{draft}"
    assert python_code(unfinished) == "print('final')"
    assert extract_answer(unfinished).text is None
    assert parse_score(unfinished).score is None
    begun = f"{draft}</{name}>\n```python\nprint('final')\n```\n\\boxed{{5}}\nSCORE: 1"
    assert python_code(begun) == "print('final')"
    assert extract_answer(begun).text == "5"
    assert parse_score(begun).score == 1
    assert parse_score(draft, thinking=True).score is None


def test_code_that_works_on_tags_is_run_as_it_is_written() -> None:
    code = PROGRAM.removeprefix("```python\n").removesuffix("\n```")
    assert python_code(PROGRAM) == code
    assert python_code(f"<think>hm</think>{PROGRAM}<think>done?</think>") == code
    doc = 'def f():\n    """Cut <think>\n    off."""\n    return f"<think>{1}</think>"'
    assert python_code(f"```python\n{doc}\n```") == doc


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("<|assistant|><think>\n", True),
        ("<|assistant|><THINK>", True),
        ("<|assistant|><think>\n\n</think>\n\n", False),
        ("use <think> tags<|assistant|>", False),
        ("", False),
    ],
)
def test_a_prompt_that_opens_a_thought(prompt: str, opened: bool) -> None:
    assert opens_thought(prompt) == opened


pieces = st.sampled_from(
    ["<think>", "</think>", "<THINKING>", "</Thought>", "<thi", "nk>", "</", "<", ">", "`", "```", "```python\n", "\n",
     " ", "'", '"', '"""', "#", "x", "<think a=b>", "```\n", "\n```\n", "'<think>'", "\\", "\r\n"]
)  # fmt: skip
texts = st.lists(pieces, max_size=30).map("".join)
plain = st.text(alphabet="ab \n'.\u00e9", max_size=30)


@settings(max_examples=600, deadline=None)
@given(texts, st.booleans())
def test_what_is_visible_has_no_further_thoughts(text: str, thinking: bool) -> None:
    seen = visible_text(text, thinking=thinking)
    assert visible_text(seen) == seen
    if "`" not in text:
        assert TAG.search(seen) is None
    assert thinking or visible_text(defuse_tags(text)) == defuse_tags(text)


@settings(max_examples=200, deadline=None)
@given(plain, st.sampled_from(NAMES), texts, texts)
def test_text_in_front_of_a_tag_is_visible_whatever_follows(before: str, name: str, thought: str, rest: str) -> None:
    opened = f"{before}<{name}>{thought}"
    assert visible_text(f"{opened}</{name}>{rest}").startswith(before)
    if "</" not in thought:
        assert visible_text(opened) == before


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(plain, plain), max_size=5), plain)
def test_thoughts_are_cut_and_nothing_else(pairs: list[tuple[str, str]], rest: str) -> None:
    text = "".join(f"{said}<think>{thought}secret</think>" for said, thought in pairs) + rest
    assert visible_text(text) == "".join(said for said, _ in pairs) + rest


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 60_000,
        "</think>" * 60_000,
        "<think></think>" * 30_000,
        "<thi" * 60_000 + "<think></think>" + "nk>" * 60_000,
        "<think" + " " * 300_000,
        "<think a=" + "b" * 300_000,
        "```python\n'<think>'\n```\n" * 15_000,
        "```python\n" + "'<think>'\n" * 30_000 + "```",
        "```python\n" + "(" * 50_000 + "'<think>'\n```",
        "```python\n'<think>\n" * 20_000,
        " ```" * 80_000,
        "<think>```\n</think>" * 15_000,
    ],
    ids=range(12),
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    started = time.monotonic()
    assert visible_text(visible_text(text)) == visible_text(text)
    assert time.monotonic() - started < 20
