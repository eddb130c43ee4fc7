"""Whole episodes with a coach that is a real model behind a real server, and a proxy that does harm in between."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from coach_cases import request
from coach_servers import Http, HttpServer, forward

from mappa_envs import background
from mappa_envs.judges.coach import asker
from mappa_envs.judges.coach.judge import CoachJudge
from mappa_envs.transcript import Verdict

SERVER = Path(__file__).parents[4] / "examples" / "openai_server.py"
ACTIONS = [f"The answer is {i} * {i + 1}.\nCompute: {i} * {i + 1}" for i in range(20)]
HARM = {
    "429": Http(b"{}", 429),
    "500": Http(b"oops", 500),
    "stall": Http(mode="stall"),
    "cut": Http(b'{"choices": [{"message": {"content": "SCORE: 9"}}]}', mode="cut"),
    "wrong json": Http(b'{"score": 9}'),
    "empty": Http(b""),
    "huge": Http(mode="huge"),
    "out of range": Http(b'{"choices": [{"message": {"content": "SCORE: 90"}, "finish_reason": "stop"}]}'),
}


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """The embedded model behind `examples/openai_server.py`, a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(20)
    process.stdout.close()


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A short prompt: the embedded model reads slowly."""
    folder = tmp_path_factory.mktemp("short")
    (folder / "system.txt").write_text("Score.")
    (folder / "user.txt").write_text("$boundary\n$action\n$reply")
    (folder / "reply_json.txt").write_text("JSON.")
    return str(folder)


def score(url: str, prompt: str, numbers: Sequence[int] = range(len(ACTIONS)), **settings: Any) -> list[Verdict]:
    judge = CoachJudge(model="tiny", base_url=url, api_key_env=None, prompt=prompt, concurrency=5, **settings)
    return background.run(judge.score([request(ACTIONS[number]) for number in numbers]))


@pytest.fixture(scope="module")
def undisturbed(model_server: str, prompt: str) -> list[float | None]:
    """The scores without a proxy."""
    scores = [v.score for v in score(model_server, prompt, timeout=120)]
    background.run(asker.close_askers())
    return scores


def number_of(body: dict[str, Any]) -> int:
    """Which of `ACTIONS` a request is about."""
    found = re.search(r"Compute: (\d+) \*", body["messages"][1]["content"])
    assert found is not None
    return int(found[1])


def harm_for(number: int) -> str | None:
    """Every second action is harmed, by each harm in turn."""
    return list(HARM)[number // 2 % len(HARM)] if number % 2 else None


def test_the_model_gives_scores_of_its_own(undisturbed: list[float | None]) -> None:
    assert None not in undisturbed


def test_no_harm_on_the_way_becomes_a_score(
    model_server: str, prompt: str, undisturbed: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "_FIRST_WAIT", 0.01)
    done: Counter[str] = Counter()

    async def proxy(body: dict[str, Any]) -> Http:
        harm = harm_for(number_of(body))
        done[harm or "none"] += 1
        return HARM[harm] if harm else await forward(model_server, body)

    stalled = [n for n in range(len(ACTIONS)) if harm_for(n) == "stall"]
    others = [n for n in range(len(ACTIONS)) if harm_for(n) != "stall"]
    with HttpServer(proxy) as server:
        found = dict(zip(others, score(server.url, prompt, others, tries=2, timeout=120), strict=True))
        found |= dict(zip(stalled, score(server.url, prompt, stalled, tries=2, timeout=1), strict=True))
        background.run(asker.close_askers())
    for number, verdict in found.items():
        if harm_for(number):
            assert (verdict.status, verdict.score, verdict.reward) == ("failed", None, 0.0), (number, verdict)
        else:
            assert (verdict.status, verdict.score) == ("ok", undisturbed[number]), (number, verdict)
    assert set(done) == {"none", *HARM}


def test_harm_that_passes_leaves_no_trace_in_the_scores(
    model_server: str, prompt: str, undisturbed: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "_FIRST_WAIT", 0.01)
    tries: Counter[int] = Counter()

    async def proxy(body: dict[str, Any]) -> Http:
        number = number_of(body)
        tries[number] += 1
        harm = list(HARM)[number % len(HARM)]
        return HARM[harm] if tries[number] == 1 and harm != "stall" else await forward(model_server, body)

    with HttpServer(proxy) as server:
        # A reply that is out of range is corrected, and a correction is another question with another answer.
        verdicts = score(server.url, prompt, timeout=120)
        background.run(asker.close_askers())
    for number, verdict in enumerate(verdicts):
        corrected = list(HARM)[number % len(HARM)] == "out of range"
        assert verdict.status == "ok", (number, verdict)
        assert corrected or verdict.score == undisturbed[number]
