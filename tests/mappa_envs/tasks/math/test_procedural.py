from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.math.families import FAMILIES, STARTER_FAMILIES
from mappa_envs.tasks.math.procedural import ProceduralSource, split_of
from mappa_envs.tasks.math.statements import normalise_statement, stable_share

ALL_LEVELS = (1, 2, 3, 4, 5)


def test_a_task_carries_its_family_level_and_hidden_answer() -> None:
    source = ProceduralSource("train", seed=4)
    task = source.task(17)
    assert isinstance(source, TaskSource) and source.size is None
    assert task.kind in FAMILIES and task.level in (1, 2, 3)
    assert task.source == "procedural" and len(task.answers) == 1
    assert task.expression and len(task.mistakes) >= 2
    assert task.id == "procedural-train-4-17"


def test_tasks_do_not_depend_on_the_order_of_calls() -> None:
    one, other = ProceduralSource("eval", 3), ProceduralSource("eval", 3)
    forwards = [one.task(i) for i in range(30)]
    assert [other.task(i) for i in reversed(range(30))] == forwards[::-1]


def test_tasks_are_the_same_in_another_process_whatever_the_hash_seed() -> None:
    code = (
        "import json, dataclasses; from mappa_envs.tasks.math.procedural import ProceduralSource as P;"
        "s = P('eval', 11, levels=(1, 3, 5));"
        "print(json.dumps([dataclasses.asdict(s.task(i)) for i in range(0, 60, 7)]))"
    )
    source = ProceduralSource("eval", 11, levels=(1, 3, 5))
    here = json.loads(json.dumps([asdict(source.task(i)) for i in range(0, 60, 7)]))
    for hash_seed in ("0", "4321"):
        path = os.pathsep.join(entry for entry in sys.path if entry)
        there = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert json.loads(there) == here


def test_splits_are_disjoint_whatever_their_seeds_and_eval_gets_about_a_fifth() -> None:
    train = {normalise_statement(ProceduralSource("train", seed).task(i).prompt) for seed in (0, 1) for i in range(500)}
    evaluation = {
        normalise_statement(ProceduralSource("eval", seed).task(i).prompt) for seed in (0, 7) for i in range(300)
    }
    assert not train & evaluation
    assert all(split_of(prompt) == "train" for prompt in train)
    assert all(split_of(prompt) == "eval" for prompt in evaluation)
    numbers = [split_of(f"Find the greatest common divisor of {a} and 60.") for a in range(5000)]
    assert 0.18 < numbers.count("eval") / 5000 < 0.22


def test_mirrored_problems_lie_on_the_same_side() -> None:
    text = "Find the greatest common divisor of {} and {}."
    sides = {(a, b): split_of(text.format(a, b)) for a in range(20, 60) for b in range(20, 60)}
    assert set(sides.values()) == {"train", "eval"}
    assert all(sides[a, b] == sides[b, a] for a, b in sides)


def test_a_split_does_not_depend_on_spacing_or_case() -> None:
    prompt = ProceduralSource("eval", 0).task(0).prompt
    assert split_of("  " + prompt.replace(" ", "\n ").upper()) == "eval"


def test_every_cell_of_families_and_levels_comes_up_once_per_round() -> None:
    source = ProceduralSource("train", seed=9, families=STARTER_FAMILIES, levels=ALL_LEVELS)
    for start in (0, 50):
        cells = Counter((t.kind, t.level) for t in (source.task(i) for i in range(start, start + 50)))
        assert len(cells) == 50 and set(cells.values()) == {1}


def test_every_family_at_every_level_has_problems_in_both_splits() -> None:
    count = len(FAMILIES) * 5
    for split in ("train", "eval"):
        source = ProceduralSource(split, seed=5, levels=ALL_LEVELS, size=count)
        assert len({source.task(i).prompt for i in range(count)}) > 0.9 * count


def test_seeds_give_different_problems_and_orders() -> None:
    sources = [ProceduralSource("train", seed, STARTER_FAMILIES) for seed in (0, 1)]
    first, second = ([source.task(i) for i in range(20)] for source in sources)
    assert [t.kind for t in first] != [t.kind for t in second]
    assert not {t.prompt for t in first} & {t.prompt for t in second} == {t.prompt for t in first}


def test_a_finite_source_ends() -> None:
    source = ProceduralSource("train", size=3)
    assert len(source) == source.size == 3
    assert len({source.task(i).id for i in range(3)}) == 3
    for index in (3, -1, True, 1.0, "0"):
        with pytest.raises(TaskError, match="no such task"):
            source.task(index)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="endless"):
        len(ProceduralSource("train"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "test"}, "unknown split"),
        ({"seed": -1}, "bad seed"),
        ({"seed": True}, "bad seed"),
        ({"size": 0}, "bad size"),
        ({"families": ["gdc"]}, "did you mean 'gcd'"),
        ({"families": ["zzzzzz"]}, "pick from the list"),
        ({"families": "gcd"}, "non-empty list"),
        ({"families": []}, "non-empty list"),
        ({"families": ["gcd", "gcd"]}, "named twice"),
        ({"levels": (0,)}, "bad levels"),
        ({"levels": (6,)}, "bad levels"),
        ({"levels": (1, 1)}, "bad levels"),
        ({"levels": ()}, "bad levels"),
        ({"levels": 3}, "bad levels"),
        ({"levels": (1.5,)}, "bad levels"),
    ],
)
def test_bad_arguments_are_named_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ProceduralSource(**arguments)


def test_shares_are_frozen() -> None:
    # The start of a SHA-256 sum; a change would move problems between splits.
    assert stable_share("Find the greatest common divisor of 12 and 18.", "split") == pytest.approx(0.87995, abs=1e-5)
    assert stable_share("", "") != stable_share("", "split")
    assert all(0 <= stable_share(str(i)) < 1 for i in range(1000))
