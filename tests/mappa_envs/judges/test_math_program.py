from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.judges.math_rules.program import MAX_CODE, parse_quietly, typed_in

PROBLEM = "In how many ways can 3 of 25 people be chosen?"
ANSWER = "2300"


@pytest.mark.parametrize(
    "code",
    [
        "import math\nprint(math.comb(25, 3))",
        "print(25 * 24 * 23 // 6)",
        "n = 25\nprint(n * (n - 1) * (n - 2) // 6)",
        "from itertools import combinations\nprint(len(list(combinations(range(25), 3))))",
        "count = 0\nfor a in range(25):\n  for b in range(a):\n    for c in range(b):\n      count += 1\nprint(count)",
        "def ways(n, k):\n    return 1 if k == 0 else ways(n - 1, k - 1) * n // k\nprint(ways(25, 3))",
        "def main():\n    import math\n    print(math.comb(25, 3))\nif __name__ == '__main__':\n    main()",
        "import math\nx = math.comb(25, 3)\nx",
        "import math\nprint('checking')\nprint(f'{math.comb(25, 3)}')",
        "import math\nprint(math.comb(25, 3)) if 25 > 3 else print(0)",
        "x = sum([25, 24])\nassert 2300 > x\nprint(eval('25 * 24 * 23 // 6'))",
        "for n in range(10000):\n    if n * 6 == 25 * 24 * 23:\n        print(n)\n        break",
        "print(int('100011111100', 2))",
        "x = 25\nx *= 92\nprint(x)",
        "print('%d' % (25 * 92))",
        "print(''.join(['23', '00']))",
        "print(unknown)",
        "import sys\nsys.stdout.write(str(25 * 92))",
        "pass",
    ],
)
def test_a_computed_value_is_not_typed_in(code: str) -> None:
    assert typed_in(code, ANSWER, PROBLEM) is False


@pytest.mark.parametrize(
    "code",
    [
        "print(2300)",
        "print('2300')",
        "print(str(int('2300')))",
        "import sys\nsys.stdout.write('2300')",
        "def answer():\n    return 2300\nprint(answer())",
        "a = b = 2300\na",
        "xs = [2300]\nprint(xs[0])",
        "print(2300 if 25 > 3 else 0)",
        "x: int = 2300\nprint(x)",
        "print((y := 2300))",
        "print(-(-2300))",
        "answer = {'ways': 2300}\nprint(answer['ways'])",
    ],
)
def test_a_literal_is_typed_in_however_it_is_dressed(code: str) -> None:
    assert typed_in(code, ANSWER, PROBLEM) is True


def test_words_and_small_numbers_under_a_computed_condition_are_computed() -> None:
    code = "n = 25\nif all(n % d for d in range(2, n)):\n    print('prime')\nelse:\n    print('composite')"
    assert typed_in(code, "composite", PROBLEM) is False
    assert typed_in("print('composite')", "composite", PROBLEM) is True
    assert typed_in("print(1 if 25 % 3 else 0)", "1", PROBLEM) is False


def test_fractions_are_typed_in_unless_the_problem_gives_them() -> None:
    fraction = "from fractions import Fraction\nprint(Fraction({}, {}))"
    assert typed_in(fraction.format(4, 9), "4/9", PROBLEM) is True
    assert typed_in(fraction.format(20, 45), "4/9", PROBLEM) is False
    assert typed_in(fraction.format(3, 25), "3/25", PROBLEM) is False


def test_numbers_of_the_problem_and_their_neighbours_may_stand_in_a_program() -> None:
    assert typed_in("print(max(range(1, 26)) if 25 else 0)", "25", PROBLEM) is False
    assert typed_in("print(pow(3, 24, 26 * 1) or 24)", "24", PROBLEM) is False


def test_a_program_that_cannot_be_read_is_not_judged() -> None:
    assert typed_in("print(2300", ANSWER, PROBLEM) is None
    assert typed_in("#" * (MAX_CODE + 1), ANSWER, PROBLEM) is None
    assert parse_quietly("print('\\d')") is not None


@given(st.text(max_size=200))
def test_any_text_can_be_asked_about(code: str) -> None:
    assert typed_in(code, ANSWER, PROBLEM) in (True, False, None)
