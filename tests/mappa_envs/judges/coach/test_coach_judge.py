from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from coach_cases import request
from coach_servers import Http, HttpServer, completion, error

from envs_registry.errors import ConfigError, EntryPointError
from mappa_envs import background
from mappa_envs.errors import BudgetError
from mappa_envs.judges import Judge, OutcomeJudge, get_judge
from mappa_envs.judges.coach import asker
from mappa_envs.judges.coach.endpoint import MAX_BODY_BYTES
from mappa_envs.judges.coach.judge import CoachJudge
from mappa_envs.judges.math_rules import MathRules
from mappa_envs.transcript import Verdict

Answers = Callable[..., HttpServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """Start servers that give the listed answers one after the other, and then the last one again."""
    monkeypatch.setattr(asker, "_FIRST_WAIT", 0.01)
    servers = []

    def start(*answers: Http | Callable[[dict[str, Any]], Http]) -> HttpServer:
        left = list(answers)

        def handler(body: dict[str, Any]) -> Http:
            answer = left.pop(0) if len(left) > 1 else left[0]
            return answer(body) if callable(answer) else answer

        server = HttpServer(handler)
        servers.append(server.__enter__())
        return server

    yield start
    background.run(asker.close_askers())
    for server in servers:
        server.__exit__()


def coach(server: HttpServer, **settings: Any) -> CoachJudge:
    return CoachJudge(**{"model": "m", "base_url": server.url, "api_key_env": None, **settings})


def score(judge: Judge, *actions: str) -> list[Verdict]:
    return background.run(judge.score([request(action) for action in actions or ("x",)]))


GOOD = completion('{"reason": "fine", "score": 7.5}')


def test_an_action_gets_the_score_of_the_reply(serve: Answers) -> None:
    server = serve(GOOD)
    judge = coach(server, params={"reasoning_effort": "low"})
    [verdict] = score(judge)
    assert (verdict.status, verdict.score, verdict.reward, verdict.reason) == ("ok", 7.5, 0.75, "fine")
    assert verdict.judge == judge.id
    assert judge.id.startswith("coach/m/v1-")
    assert (verdict.cost.calls, verdict.cost.prompt_tokens, verdict.cost.completion_tokens) == (1, 100, 10)
    [body] = server.seen
    assert body["model"] == "m"
    assert body["temperature"] == 0
    assert body["max_tokens"] == 2048
    assert body["reasoning_effort"] == "low"
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["reason", "score"]
    assert [m["role"] for m in body["messages"]] == ["system", "user"]


def test_verdicts_come_in_the_order_of_the_requests_and_never_too_many_at_once(serve: Answers) -> None:
    async def by_action(body: dict[str, Any]) -> Http:
        number = int(body["messages"][1]["content"].split("number ")[1].split("\n")[0])
        await asyncio.sleep(0.02 * (3 - number % 4))
        return completion(f"SCORE: {number % 11}")

    server = serve(by_action)  # type: ignore[arg-type]
    verdicts = score(coach(server, concurrency=4), *[f"number {i}" for i in range(24)])
    assert [v.score for v in verdicts] == [i % 11 for i in range(24)]
    assert server.most_at_once == 4


TRANSIENT = {
    "429": error(429, "slow down"),
    "429 with a date": Http(b"", 429, {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"}),
    "429 with seconds": Http(b"", 429, {"Retry-After": "0.01"}),
    "500": error(500, "oops"),
    "503 html": Http(b"<html>busy</html>", 503),
    "529": Http(b"overloaded", 529),
    "stall": Http(mode="stall"),
    "drip": Http(GOOD.body, mode="drip"),
    "hang up": Http(mode="hang_up"),
    "cut": Http(GOOD.body, mode="cut"),
    "huge": Http(mode="huge"),
    "huge error": Http(status=500, mode="huge"),
    "empty body": Http(b""),
    "no json": Http(b"SCORE: 9"),
    "cut json": Http(GOOD.body[: len(GOOD.body) // 2]),
    "other json": Http(b'{"score": 9}'),
    "no choices": Http(b'{"choices": []}'),
    "an error as 200": Http(b'{"error": {"message": "upstream failed", "code": 502}}'),
    "null content": completion(None),
    "empty content": completion("  "),
    "content in parts": completion([{"type": "text", "text": "SCORE: 9"}]),
    "bad unicode": Http(b'{"choices": [{"message": {"content": "\xff\xfe"}}]'),
    "bad gzip": Http(b"SCORE: 9", headers={"Content-Encoding": "gzip"}),
}


def limit_for(fault: str) -> float:
    """A short limit for one try only where the answer never comes: a busy machine must not make faults of its own."""
    return 1.0 if fault in ("stall", "drip") else 60.0


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_that_passes_costs_a_try_and_no_score(fault: str, serve: Answers) -> None:
    server = serve(TRANSIENT[fault], GOOD)
    [verdict] = score(coach(server, timeout=limit_for(fault), tries=20))
    assert (verdict.status, verdict.score) == ("ok", 7.5)
    assert verdict.cost.calls >= len(server.seen) >= 2
    assert verdict.cost.completion_tokens == 10


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_that_stays_is_a_failed_verdict(fault: str, serve: Answers) -> None:
    server = serve(TRANSIENT[fault])
    [verdict] = score(coach(server, timeout=limit_for(fault) / 2, tries=2))
    assert (verdict.status, verdict.score, verdict.reward) == ("failed", None, 0.0)
    assert "after 2 tries" in verdict.reason
    assert verdict.cost.calls == 2


def test_the_deadline_ends_all_tries(serve: Answers) -> None:
    server = serve(Http(mode="stall"))
    verdicts = score(coach(server, timeout=0.3, deadline=1.0, tries=1000), "a", "b")
    assert [v.status for v in verdicts] == ["failed", "failed"]
    assert all("no usable reply within 1 s; last: no answer within 0.3 s" in v.reason for v in verdicts)
    assert len(server.seen) < 50


def test_a_wait_beyond_the_deadline_is_not_waited(serve: Answers) -> None:
    server = serve(Http(b"", 429, {"Retry-After": "86400"}))
    [verdict] = score(coach(server))
    assert verdict.status == "failed"
    assert "86400" in verdict.reason
    assert len(server.seen) == 1


def test_an_endpoint_that_is_not_there_is_a_failed_verdict() -> None:
    [verdict] = score(CoachJudge(model="m", base_url="http://127.0.0.1:9/v1", api_key_env=None, tries=1))
    assert verdict.status == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        completion("I like it."),
        completion("SCORE: 85"),
        completion('{"reason": "x", "score": 12}'),
        completion('{"reason": "x", "score": 1', finish="length"),
        completion("SCORE: 1", finish="length"),
        completion(None, finish="length"),
        completion("<think>SCORE: 9"),
    ],
)
def test_an_unusable_reply_is_corrected_once_and_then_failed(answer: Http, serve: Answers) -> None:
    server = serve(answer, GOOD)
    [verdict] = score(coach(server))
    assert (verdict.status, verdict.score, verdict.cost.prompt_tokens) == ("ok", 7.5, 200)
    first, second = (body["messages"] for body in server.seen)
    assert second[:2] == first
    assert [m["role"] for m in second[2:]] == ["assistant", "user"]
    assert "cannot be used" in second[3]["content"]
    stubborn = serve(answer)
    [verdict] = score(coach(stubborn))
    assert verdict.status == "failed"
    assert verdict.reason.startswith("unusable reply: ")
    assert len(stubborn.seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "maximum context length is 4096 tokens"),
        error(413, "too large"),
        error(422, "bad"),
        completion(None, finish="content_filter"),
        Http(b'{"choices": [{"message": {"content": null, "refusal": "I cannot"}, "finish_reason": "stop"}]}'),
    ],
)
def test_a_refusal_of_one_request_fails_that_request_at_once(answer: Http, serve: Answers) -> None:
    server = serve(answer, GOOD)
    judge = coach(server, concurrency=1)
    first, second = score(judge, "a", "b")
    assert (first.status, second.status) == ("failed", "ok")
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ("response_format", "Unknown parameter: response_format"),
        ("response_format", "Invalid schema: guided decoding is not supported"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model."),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    ],
)
def test_what_an_endpoint_does_not_take_is_left_out_from_then_on(refused: str, message: str, serve: Answers) -> None:
    server = serve(lambda body: error(400, message) if refused in body else completion("Fine.\nSCORE: 4"))
    judge = coach(server, concurrency=4)
    assert [v.score for v in score(judge, *"abcdefgh")] == [4.0] * 8
    assert sum(refused in body for body in server.seen) <= 4
    last = server.seen[-1]
    assert refused not in last
    assert ("max_completion_tokens" in last) == (refused == "max_tokens")
    assert ("SCORE: number" in last["messages"][1]["content"]) == (refused == "response_format")


def test_an_agents_text_in_an_error_does_not_change_how_others_are_asked(serve: Answers) -> None:
    server = serve(GOOD, error(400, "invalid text: 'temperature response_format'"), GOOD)
    judge = coach(server, concurrency=1)
    assert [v.status for v in score(judge, "a", "b", "c")] == ["ok", "failed", "ok"]
    assert {"temperature", "response_format"} <= server.seen[-1].keys()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(401, "Incorrect API key provided: sk-secret"), ConfigError),
        (error(403, "no access"), ConfigError),
        (error(404, "The model `m` does not exist"), ConfigError),
        (Http(b'[{"error": {"code": 400, "message": "API key not valid."}}]', 400), ConfigError),
        (error(402, "Insufficient balance"), BudgetError),
        (error(429, "You exceeded your quota", type="insufficient_quota"), BudgetError),
    ],
)
def test_what_fails_for_every_request_stops_at_once(
    answer: Http, kind: type[Exception], serve: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    server = serve(answer)
    with pytest.raises(kind) as caught:
        score(coach(server, api_key_env="MY_KEY"))
    assert len(server.seen) == 1
    assert "authorization: bearer sk-secret" in server.headers[0].lower()
    assert "sk-secret" not in str(caught.value)
    assert "fix:" in str(caught.value)


def test_a_filter_in_front_of_a_working_endpoint_fails_one_request(serve: Answers) -> None:
    server = serve(GOOD, error(403, "flagged"), GOOD)
    assert [v.status for v in score(coach(server, concurrency=1), "a", "b", "c")] == ["ok", "failed", "ok"]


def test_a_missing_key_is_named_before_anything_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"(?s)OPENAI_API_KEY.*api_key_env: null"):
        get_judge({"name": "coach", "model": "m"}, rules=MathRules)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "model: Field required"),
        ({"model": "m", "modle": "m"}, "did you mean 'model'"),
        ({"model": "m", "base_url": "localhost"}, "base_url"),
        ({"model": "m", "deadline": 0}, "deadline"),
        ({"model": "m", "params": {"temperature": 1}}, "use the setting"),
        ({"model": "m", "budget": 1.0}, "needs a folder"),
        ({"model": "m", "budget": 1.0, "folder": "x"}, "needs a price"),
        ({"model": "m", "replay": "missing.jsonl"}, "no such recording"),
        ({"model": "m", "record": "a", "replay": "b"}, "exclude each other"),
        ({"model": "m", "prompt": "v0"}, "unknown prompt"),
        ({"model": "m", "limits": {"acton": 5}}, "limits.acton"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CoachJudge(**{"api_key_env": None, **settings})


def test_judges_are_found_by_name_config_and_path() -> None:
    assert isinstance(get_judge("outcome", rules=MathRules), OutcomeJudge)
    assert isinstance(get_judge({"name": "rules"}, rules=MathRules), MathRules)
    made = get_judge(f"{OutcomeJudge.__module__}:OutcomeJudge", rules=MathRules)
    assert isinstance(made, OutcomeJudge)
    panel = get_judge(
        {"name": "panel", "members": ["rules", {"name": "coach", "model": "m", "api_key_env": None}]}, rules=MathRules
    )
    assert "coach/m/" in panel.id


@pytest.mark.parametrize(
    ("judge", "kind", "message"),
    [
        ("coahc", ConfigError, "did you mean 'coach'"),
        ({"model": "m"}, ConfigError, "needs a name"),
        ({"name": "rules", "strict": True}, ConfigError, "no settings"),
        ({"name": "outcome", "strict": True}, ConfigError, "no keyword 'strict'"),
        (7, ConfigError, "wrong type"),
        ("json:loads", ConfigError, "needs 's'"),
        ("collections:OrderedDict", EntryPointError, "makes no judge"),
        ("nowhere.at_all:Judge", EntryPointError, "cannot be imported"),
    ],
)
def test_what_is_no_judge_is_named(judge: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        get_judge(judge, rules=MathRules)


def test_the_longest_answer_is_far_longer_than_a_reply(serve: Answers) -> None:
    long = "x" * (MAX_BODY_BYTES // 4)
    [verdict] = score(coach(serve(completion(json.dumps({"reason": long, "score": 3})))))
    assert verdict.score == 3
    assert len(verdict.reason) < 3000
