from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from coach_cases import request
from coach_servers import Http, HttpServer, completion, error

from mappa_envs import background
from mappa_envs.errors import BudgetError, JudgeError
from mappa_envs.judges.coach import asker
from mappa_envs.judges.coach.cache import ReplyCache, content_key
from mappa_envs.judges.coach.files import append_line, read_lines, write_once
from mappa_envs.judges.coach.judge import CoachJudge
from mappa_envs.judges.coach.settings import coach_settings
from mappa_envs.judges.coach.spending import Ledger
from mappa_envs.transcript import Cost, Verdict

PRICE = {"prompt": 1000.0, "completion": 10_000.0}
"""100 prompt and 10 completion tokens, as the server reports, cost 0.2."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """Gives every call another score, so that only a cache can give the same one twice."""
    monkeypatch.setattr(asker, "_FIRST_WAIT", 0.01)
    numbers = count()
    with HttpServer(lambda body: completion(f"SCORE: {next(numbers) % 1000 / 100}")) as started:
        yield started
        background.run(asker.close_askers())


def score(server: HttpServer, actions: list[str], **settings: Any) -> list[Verdict]:
    judge = CoachJudge(**{"model": "m", "base_url": server.url, "api_key_env": None, **settings})
    return background.run(judge.score([request(action) for action in actions]))


def test_equal_requests_are_paid_once_in_all_processes(server: HttpServer, tmp_path: Path) -> None:
    first = score(server, ["a", "b", "a"], folder=tmp_path)
    assert len(server.seen) == 2
    assert first[0].score == first[2].score != first[1].score
    assert sorted(v.cost.calls for v in first) == [0, 1, 1]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from coach_cases import request\n"
        "from mappa_envs import background\n"
        "from mappa_envs.judges.coach.judge import CoachJudge\n"
        "judge = CoachJudge(model='m', base_url=sys.argv[2], api_key_env=None, folder=sys.argv[3])\n"
        "print([v.score for v in background.run(judge.score([request(a) for a in 'abc']))])"
    )
    arguments = [str(Path(__file__).parent), server.url, str(tmp_path)]
    there = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert json.loads(there.stdout)[:2] == [first[0].score, first[1].score]
    assert len(server.seen) == 3


def test_another_model_prompt_or_limit_is_another_question(server: HttpServer, tmp_path: Path) -> None:
    own = tmp_path / "prompt"
    own.mkdir()
    (own / "system.txt").write_text("Be strict.")
    changes: list[dict[str, Any]] = [
        {},
        {"model": "n"},
        {"prompt": str(own)},
        {"temperature": 0.5},
        {"params": {"seed": 1}},
        {"limits": {"action": 1}},
        {"structured": "never"},
    ]
    for i, change in enumerate(changes):
        score(server, ["action"], folder=tmp_path / "kept", **change)
        assert len(server.seen) == i + 1
    score(server, ["action"], folder=tmp_path / "kept", concurrency=1, deadline=60, tries=2)
    assert len(server.seen) == len(changes)


def test_without_cache_every_request_is_asked(server: HttpServer, tmp_path: Path) -> None:
    first, second = score(server, ["a", "a"], folder=tmp_path, cache=False)
    assert first.score != second.score


def test_failures_are_not_kept(tmp_path: Path) -> None:
    answers = [completion("no score"), completion("still none"), completion("SCORE: 3")]
    with HttpServer(lambda body: answers.pop(0)) as server:
        assert [v.status for v in score(server, ["a"], folder=tmp_path)] == ["failed"]
        assert [v.score for v in score(server, ["a"], folder=tmp_path)] == [3.0]


def test_the_first_writer_of_a_reply_wins(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        got = set(pool.map(lambda i: ReplyCache(tmp_path).put("abcd", f"SCORE: {i}"), range(40)))
    assert len(got) == 1
    assert ReplyCache(tmp_path).get("abcd") in got
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["abcd.txt"]
    assert write_once(tmp_path / "ab" / "abcd.txt", "other") in got


def test_keys_depend_on_content_and_not_on_order() -> None:
    assert content_key({"a": 1, "b": [1, 2]}) == content_key({"b": [1, 2], "a": 1})
    assert content_key({"a": 1}) != content_key({"a": "1"})


def test_the_ledger_adds_up_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    mine = Ledger(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: Ledger(path).add(Cost(1, 10, 5, 0.25), "m"), range(40)))
    assert mine.total() == Cost(40, 400, 200, 10.0)
    mine.add(Cost(1, 0, 0, 1.0), "m")
    assert mine.total() == Ledger(path).total() == Cost(41, 400, 200, 11.0)


def test_a_line_that_is_being_written_is_read_later_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    append_line(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": 2')
    [(offset, record)] = read_lines(path)
    assert record == {"a": 1}
    with path.open("a") as file:
        file.write("}\nnonsense\n")
    lines = read_lines(path, offset)
    assert next(lines)[1] == {"a": 2}
    with pytest.raises(JudgeError, match="delete that line"):
        next(lines)


def test_money_is_counted_by_the_price(server: HttpServer, tmp_path: Path) -> None:
    verdicts = score(server, ["a", "b"], folder=tmp_path, price=PRICE)
    assert [v.cost for v in verdicts] == [Cost(1, 100, 10, pytest.approx(0.2))] * 2
    assert Ledger(tmp_path / "ledger.jsonl").total().money == pytest.approx(0.4)


def test_usage_that_is_not_reported_is_estimated(tmp_path: Path) -> None:
    with HttpServer(lambda body: completion("SCORE: 3", usage=None)) as server:
        [verdict] = score(server, ["a"], price=PRICE)
        shown = sum(len(m["content"]) for m in server.seen[0]["messages"])
    assert verdict.cost.prompt_tokens == shown // 3 + 1
    assert verdict.cost.money > 0


def test_the_price_table_knows_dated_names() -> None:
    fields = {"api_key_env": None}
    dated = coach_settings({"model": "gpt-4o-mini-2024-07-18", **fields})
    assert dated.known_price == coach_settings({"model": "gpt-4o-mini", **fields}).known_price is not None
    assert coach_settings({"model": "my-model", **fields}).known_price is None


def test_the_budget_is_never_passed_and_a_higher_one_goes_on_from_the_cache(server: HttpServer, tmp_path: Path) -> None:
    actions = [f"action {i}" for i in range(30)]
    settings: dict[str, Any] = {"folder": tmp_path, "price": PRICE, "max_tokens": 16, "corrections": 0}
    with pytest.raises(BudgetError, match=r"(?s)budget is used up.*raise the coach's budget and resume"):
        score(server, actions, budget=5.0, **settings)
    paid = len(server.seen)
    total = Ledger(tmp_path / "ledger.jsonl").total()
    assert 0 < paid < 30
    assert total.money == pytest.approx(0.2 * paid)
    assert total.money <= 5.0
    with pytest.raises(BudgetError):
        score(server, actions, budget=5.0, **settings)
    assert len(server.seen) - paid <= 20
    verdicts = score(server, actions, budget=1000.0, **settings)
    assert [v.status for v in verdicts] == ["ok"] * 30
    assert len(server.seen) == 30
    again = score(server, actions, budget=1000.0, **settings)
    assert [v.score for v in again] == [v.score for v in verdicts]
    assert len(server.seen) == 30


def test_a_call_that_was_given_up_counts_at_its_most(tmp_path: Path) -> None:
    with HttpServer(lambda body: Http(mode="stall")) as server:
        [verdict] = score(server, ["a"], price=PRICE, timeout=0.5, tries=1, max_tokens=1000)
        background.run(asker.close_askers())
    assert verdict.status == "failed"
    assert verdict.cost.money > 1000 * PRICE["completion"] / 1e6


def test_recorded_traffic_gives_the_same_verdicts_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "_FIRST_WAIT", 0.01)
    monkeypatch.setenv("MY_KEY", "sk-secret")
    numbers = count()
    tape = tmp_path / "traffic.jsonl"

    def handler(body: dict[str, Any]) -> Http:
        n = next(numbers)
        return [error(500, "key sk-secret"), completion("no score"), completion(f"SCORE: {n % 10}")][n % 3]

    actions = [f"action {i}" for i in range(12)]
    with HttpServer(handler) as server:
        first = score(server, actions, record=tape, api_key_env="MY_KEY", concurrency=3)
        background.run(asker.close_askers())
        calls = len(server.seen)
    monkeypatch.delenv("MY_KEY")
    second = score(server, actions, replay=tape, api_key_env="MY_KEY", concurrency=3)
    assert second == first
    assert {v.status for v in first} >= {"ok"}
    assert len(tape.read_text().splitlines()) == calls == len(server.seen)
    assert "sk-secret" not in tape.read_text()
    assert "[key]" in tape.read_text()
    [unknown] = score(server, ["another"], replay=tape, tries=1)
    assert (unknown.status, unknown.reason) == ("failed", "this request is not in the recording (after 1 tries)")
