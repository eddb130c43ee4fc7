from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappa_envs.errors import ConfigError, TaskError
from mappa_envs.grading.policy import AIME_POLICY
from mappa_envs.tasks.base import TaskSource
from mappa_envs.tasks.math.finite import FiniteSource, accepted_answers
from mappa_envs.tasks.math.jsonl import JsonlSource, split_source


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def problem(number: int, **fields: Any) -> dict[str, Any]:
    return {"prompt": f"What is {number} + 1?", "answer": number + 1, "id": f"q{number}", **fields}


def test_a_file_becomes_a_finite_source(tmp_path: Path) -> None:
    source = JsonlSource(write(tmp_path / "sums.jsonl", problem(1), problem(2, year=1999)))
    assert isinstance(source, TaskSource) and len(source) == source.size == 2
    task = source.task(1)
    assert (task.id, task.prompt, task.answers) == ("q2", "What is 2 + 1?", ("3",))
    assert (task.kind, task.source, task.level, task.expression) == ("sums", "sums", None, None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (42, ("42",)),
        (142.0, ("142",)),
        (-4.0, ("-4",)),
        (338551.0, ("338551",)),
        (0.125, ("0.125",)),
        ("080", ("080",)),
        (" 12 ", ("12",)),
        (r"336^\circ", (r"336^\circ",)),
        (r"\frac{3}{7}", (r"\frac{3}{7}",)),
        ("080 or 081 (both were accepted)", ("080", "081")),
        ("12 or 13 or 14 (all accepted)", ("12", "13", "14")),
        ([1, "2", 3.0], ("1", "2", "3")),
        (["5", 5, 5.0], ("5",)),
    ],
)
def test_answers_of_every_kind_are_read(tmp_path: Path, answer: Any, expected: tuple[str, ...]) -> None:
    source = JsonlSource(write(tmp_path / "a.jsonl", problem(1, answer=answer)))
    assert source.task(0).answers == expected


def test_other_keys_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"Question": "What is 1 + 1?", "Gold": "2", "No": 7, "topic": "sums"})
    task = JsonlSource(path, prompt="Question", answer="Gold", id="No", kind="topic").task(0)
    assert (task.id, task.kind, task.answers) == ("7", "sums", ("2",))


def test_records_without_an_id_are_named_after_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"prompt": "What is 1 + 1?", "answer": 2}\n\n  \n{"prompt": "2 + 2?", "answer": 4, "id": 9}\n')
    assert [task.id for task in JsonlSource(path).tasks] == ["line-2", "9"]
    with pytest.raises(TaskError, match="key 'uid' is missing"):
        JsonlSource(path, id="uid")


def test_windows_line_ends_and_odd_separators_inside_strings_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first = '{"prompt": "One\u2028two\u0085three?", "answer": 1}'
    path.write_bytes((first + '\r\n{"prompt": "Four?", "answer": 4}\r\n').encode())
    source = JsonlSource(path)
    assert len(source) == 2 and source.task(0).prompt == "One\u2028two\u0085three?"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not a JSON object"),
        (b"[1, 2]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"prompt": "p", "answer": 1} x', "not a JSON object"),
        (b'{"prompt": "p", "answer": NaN}', "NaN is not a JSON number"),
        (b'{"prompt": "p", "answer": -Infinity}', "not a JSON number"),
        (b'{"prompt": "p", "answer": 1e999}', "not finite"),
        (b'{"prompt": "p", "answer": ' + b"9" * 5000 + b"}", "not a JSON object"),
        (b'{"prompt": "p", "prompt": "q", "answer": 1}', "key 'prompt' occurs twice"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"answer": 1}', "key 'prompt' is missing"),
        (b'{"prompt": "p"}', "key 'answer' is missing"),
        (b'{"prompt": "p", "answer": ""}', "answer is blank"),
        (b'{"prompt": "p", "answer": "  "}', "answer is blank"),
        (b'{"prompt": "p", "answer": null}', "answer has the wrong type"),
        (b'{"prompt": "p", "answer": true}', "answer has the wrong type"),
        (b'{"prompt": "p", "answer": {"a": 1}}', "answer has the wrong type"),
        (b'{"prompt": "p", "answer": []}', "list of answers is empty"),
        (b'{"prompt": "p", "answer": [[1]]}', "answer has the wrong type"),
        (b'{"prompt": "p", "answer": "\\\\frac{1}{"}', "cannot be read as mathematics"),
        (b'{"prompt": " ", "answer": 1}', "'prompt' is blank"),
        (b'{"prompt": 5, "answer": 1}', "'prompt' is not text"),
        (b'{"prompt": "\\ud800", "answer": 1}', "surrogate"),
        (b'{"prompt": "p", "answer": "\\udfff"}', "not text"),
        (b'{"prompt": "p", "answer": 1, "id": null}', "'id' is not text"),
        (b'{"prompt": "p", "answer": 1, "id": ""}', "'id' is blank"),
        (b'{"prompt": "p\xff", "answer": 1}', "not UTF-8"),
        (b'{"prompt": "p", "answer": 1, "id": "first"}', "id 'first' is used twice"),
    ],
)
def test_a_malformed_line_is_named_by_file_and_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"prompt": "What is 1 + 1?", "answer": 2, "id": "first"}\n\n' + line + b"\n")
    with pytest.raises(TaskError) as error:
        JsonlSource(path)
    assert f"{path}:3" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_an_empty_file_is_a_named_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "none.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskError, match=r"none\.jsonl is empty"):
        JsonlSource(path)


def test_missing_files_folders_and_byte_order_marks_are_named_errors(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"cannot read .*gone\.jsonl"):
        JsonlSource(tmp_path / "gone.jsonl")
    with pytest.raises(TaskError, match="cannot read"):
        JsonlSource(tmp_path)
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"prompt": "p", "answer": 1}\n')
    with pytest.raises(TaskError, match="byte-order mark"):
        JsonlSource(path)


def test_unreadable_answers_can_be_left_out_and_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", problem(1), problem(2, answer=r"\frac{1}{"))
    source = JsonlSource(path, unparsable="skip")
    assert [task.id for task in source.tasks] == ["q1"] and source.skipped == ("q2",)
    with pytest.raises(TaskError, match="is empty"):
        JsonlSource(write(path, problem(2, answer=r"\frac{1}{")), unparsable="skip")


def test_the_policy_bounds_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", problem(5000))
    assert JsonlSource(path).task(0).answers == ("5001",)
    with pytest.raises(TaskError, match=r"a\.jsonl:1"):
        JsonlSource(path, policy=AIME_POLICY)


def test_a_finite_source_refuses_indices_out_of_range(tmp_path: Path) -> None:
    source = JsonlSource(write(tmp_path / "a.jsonl", problem(1)))
    for index in (1, -1, True, "0", 0.0):
        with pytest.raises(TaskError, match="no such task"):
            source.task(index)  # type: ignore[arg-type]


def test_a_split_is_disjoint_complete_and_stable_under_additions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *(problem(n) for n in range(400)))
    train, evaluation = split_source(JsonlSource(path), 0.25, seed=1)
    assert {t.id for t in train.tasks} | {t.id for t in evaluation.tasks} == {f"q{n}" for n in range(400)}
    assert len(train) + len(evaluation) == 400 and 70 <= len(evaluation) <= 130
    assert (train.name, evaluation.name) == ("a-train", "a-eval")
    more = write(tmp_path / "b.jsonl", *(problem(n) for n in reversed(range(500))))
    _, larger = split_source(JsonlSource(more), 0.25, seed=1)
    assert {t.id for t in evaluation.tasks} == {t.id for t in larger.tasks if int(t.id[1:]) < 400}
    _, other = split_source(JsonlSource(path), 0.25, seed=2)
    assert {t.id for t in other.tasks} != {t.id for t in evaluation.tasks}


def test_bad_splits_are_named_errors(tmp_path: Path) -> None:
    source = JsonlSource(write(tmp_path / "a.jsonl", problem(1)))
    with pytest.raises(TaskError, match="side of 'a' is empty"):
        split_source(source, 0.5)
    for share in (0, 1, -0.1, True, "half", float("nan")):
        with pytest.raises(ConfigError, match="bad eval_share"):
            split_source(source, share)  # type: ignore[arg-type]


def test_a_source_needs_tasks_with_distinct_ids(tmp_path: Path) -> None:
    task = JsonlSource(write(tmp_path / "a.jsonl", problem(1))).task(0)
    with pytest.raises(TaskError, match="uses an id twice"):
        FiniteSource("twice", [task, task])
    with pytest.raises(TaskError, match="'nothing' is empty"):
        FiniteSource("nothing", [])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=6,
    )
)
def test_any_json_value_is_read_as_answers_or_refused_by_name(value: Any) -> None:
    try:
        answers = accepted_answers(value, "here:1")
    except TaskError as error:
        assert "here:1" in str(error)
    else:
        assert answers and all(answer.strip() for answer in answers)
        assert len(set(answers)) == len(answers)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_source_or_a_named_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    with pytest.raises(TaskError, match=r"any\.jsonl"):
        JsonlSource(path)
