from __future__ import annotations

from pathlib import Path

import pytest

from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.episode_log import EpisodeLog, differing_settings
from mappa_rl.evaluation.evaluate import eval_specs
from mappa_rl.evaluation.records import EpisodeRecord

SPECS = eval_specs(5, 1, None)
SETTINGS = {"seed": 1, "eval": {"samples": 1, "betas": (1, 2)}}


def record(task: int) -> EpisodeRecord:
    return EpisodeRecord(task, 0, None, failure="gone \u2028 away")


def opened(path: Path, settings: object = SETTINGS, chunk: int = 2) -> EpisodeLog:
    return EpisodeLog(path, settings, specs=SPECS, chunk=chunk)  # type: ignore[arg-type]


def filled(path: Path, count: int) -> Path:
    log = opened(path)
    for start in range(0, count, 2):
        log.append([record(i) for i in range(start, min(start + 2, count))])
    return path


def test_episodes_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = filled(tmp_path / "new" / "folder" / "e.jsonl", 4)
    assert opened(path).records == [record(i) for i in range(4)]
    assert opened(path).records == [record(i) for i in range(4)]


def test_the_last_chunk_may_be_smaller(tmp_path: Path) -> None:
    assert len(opened(filled(tmp_path / "e.jsonl", 5)).records) == 5


def test_an_incomplete_chunk_is_cut_off(tmp_path: Path) -> None:
    path = filled(tmp_path / "e.jsonl", 4)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    assert len(opened(path).records) == 2
    assert path.read_bytes() == b"".join(lines[:3])


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "e.jsonl", 2)
    before = path.read_bytes()
    other = {"seed": 2, "eval": {"samples": 1, "betas": (1, 2)}, "extra": None}
    with pytest.raises(EvaluationError, match="other settings") as caught:
        opened(path, other)
    assert caught.value.expected == "seed = 2; extra = null"
    assert caught.value.got == "seed = 1; extra = -"
    assert "--fresh" in caught.value.fix
    with pytest.raises(EvaluationError, match="chunk = 3"):
        opened(path, chunk=3)
    with pytest.raises(EvaluationError, match="episodes = 4"):
        EpisodeLog(path, SETTINGS, specs=SPECS[:4], chunk=2)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["[]\n", "hello\n", '{"prompt": "1+1"}\n', '{"format": 99, "settings": {}}\n', "\xff\n", "hello", '{"prompt'],
)
def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(EvaluationError, match="no file of episodes"):
        opened(path)
    assert path.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize("line", [b"{}", b"nonsense", b"\xff", b"[1]", b"3"])
def test_damage_before_the_end_is_named_with_its_line(tmp_path: Path, line: bytes) -> None:
    path = filled(tmp_path / "e.jsonl", 4)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], line, *lines[3:]]))
    with pytest.raises(EvaluationError, match=r"e\.jsonl:3"):
        opened(path)


def test_episodes_in_another_order_and_too_many_are_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "e.jsonl", 5)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1]]))
    with pytest.raises(EvaluationError, match=r"e\.jsonl:7: another episode(.|\n)*no more lines"):
        opened(path)
    path.write_bytes(b"".join([lines[0], lines[2], lines[1]]))
    with pytest.raises(EvaluationError, match=r"e\.jsonl:2: another episode(.|\n)*task 0, sample 0(.|\n)*task 1"):
        opened(path)


def test_settings_are_compared_leaf_by_leaf() -> None:
    assert differing_settings({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}) == [("a.c", "2", "3")]
    assert differing_settings({"a": 1}, {"a": 1}) == []
