from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.code_blocks import python_code


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
        ("```python\na\n```\n<think>\n```python\nb\n```", "a"),
        ("```python\na\n```\n<think>why</think>so```", "a"),
        ("```python\na\n```<think>why</think>```python\nb\n```", "a\nb"),
        ("use ```code``` so:\n```python\na\n```", "a"),
        ("```code```\n```python\na\n```", "a"),
        ("````python\na\n````", "a"),
        ("```python\r\na\r\nb\r\n```", "a\nb"),
        ("```python\ns = 'a\u2028b'\n```", "s = 'a\u2028b'"),
        ("<think>never closed\n```python\nd\n```", None),
    ],
)
def test_the_code_of_an_action(action: str, code: str | None) -> None:
    assert python_code(action) == code


@given(st.text(alphabet=st.sampled_from(list("`<>/ktinhpyo\n ")), max_size=200))
def test_any_text_gives_code_or_none(action: str) -> None:
    code = python_code(action)
    assert code is None or code.strip()
