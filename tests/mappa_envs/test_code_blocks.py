from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.code_blocks import python_code, visible_text


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("text\n```py\na = 1\n```\nmore\n```\nprint(a)\n```", "a = 1\nprint(a)"),
        ("```python\nprint(1)", "print(1)"),
        ("  ```python\nx\n  ```", "x"),
        ("```json\n{}\n```\n```python\ny\n```", "y"),
        ("```bash\nls\n```", None),
        ("no code", None),
        ("```python\n\n```", None),
        ("<think>```python\nprint('draft')\n```</think>", None),
        ("<think>\n```python\ndraft\n```\n</think>\n```python\nfinal\n```", "final"),
        ("draft\n```python\nd\n```\n</think>\n```python\nfinal\n```", "final"),
        ("<think>never closed\n```python\nd\n```", None),
    ],
)
def test_the_code_of_an_action(action: str, code: str | None) -> None:
    assert python_code(action) == code


def test_thoughts_are_invisible_wherever_they_stand() -> None:
    assert visible_text("a<think>b</think>c<think>d</think>e") == "ace"
    assert visible_text("thought</think>answer") == "answer"
    assert visible_text("a<think>b") == "a"


@given(st.text(alphabet=st.sampled_from(list("`<>/ktinhpyo\n ")), max_size=200))
def test_any_text_gives_code_or_none(action: str) -> None:
    code = python_code(action)
    assert code is None or code.strip()
