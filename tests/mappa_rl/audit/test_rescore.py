from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from playing import ByRule, WholeEpisodes, cases, episodes

from mappa_envs.judges.hindsight import HindsightJudge
from mappa_rl.audit.audit import ALL
from mappa_rl.audit.rescore import rescore, write_rescored
from mappa_rl.audit.stored import read_transcripts

CASES = cases(6)


def test_new_verdicts_are_the_final_ones_and_those_given_stay(tmp_path: Path) -> None:
    result = asyncio.run(rescore(ByRule(lambda r: 7.0 if r.role == "solver" else 4.0), CASES))
    for old, new in zip(CASES, result.transcripts, strict=True):
        assert new.turns == old.transcript.turns
        assert [new.verdict(turn.index).score for turn in new.turns] == [7, 4, 4, 4]
    write_rescored(tmp_path / "new.jsonl", result)
    assert tuple(read_transcripts([tmp_path / "new.jsonl"])) == result.transcripts


def test_the_comparison_is_paired_and_per_role() -> None:
    # The stored score of every turn is 5.
    result = asyncio.run(rescore(ByRule(lambda r: {"solver": 7.0, "coder": 4.5}.get(r.role)), CASES))
    solver, coder, verifier, every = (result.roles[role] for role in ("solver", "coder", "verifier", ALL))
    assert solver.difference is not None and (solver.difference.value, solver.distance) == (2.0, 2.0)
    assert coder.difference is not None and (coder.difference.value, coder.distance) == (-0.5, 0.5)
    assert (verifier.both, verifier.failed_before, verifier.failed_after) == (0, 0, 6)
    assert (verifier.difference, verifier.before, verifier.after) == (None, None, None)
    assert (every.turns, every.both, every.before) == (24, 18, 5.0)
    assert every.after == pytest.approx((6 * 7 + 12 * 4.5) / 18)
    assert every.correlation is None
    assert json.loads(json.dumps(result.to_json()))["roles"]["solver"]["difference"]["value"] == 2.0


def test_agreement_with_the_outcome_is_given_for_both_judges() -> None:
    def knows(request: object) -> float:
        truth = request.truth  # type: ignore[attr-defined]
        return 9.0 if f"{{{truth.answers[0]}}}" in request.action else 1.0  # type: ignore[attr-defined]

    verifier = asyncio.run(rescore(ByRule(knows), CASES)).roles["verifier"]
    assert verifier.agreement_before is not None and verifier.agreement_before.value == 0.5
    assert verifier.agreement_after is not None and verifier.agreement_after.value == 1.0


def test_judges_of_episodes_rescore_too_and_the_last_rescoring_counts() -> None:
    inner = ByRule(lambda r: float(len(r.hindsight.later)) if r.hindsight else None)
    result = asyncio.run(rescore(HindsightJudge(inner), CASES))
    assert [[one.verdict(i).score for i in range(4)] for one in result.transcripts] == [[3, 2, 1, 0]] * 6
    plain = asyncio.run(rescore(WholeEpisodes(lambda r: 2.0), CASES))
    assert plain.roles[ALL].after == 2.0
    assert episodes(1)[0].final_verdicts is None
