from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from math_cases import adds_up
from table_cases import table_task

from mappa_envs.inspection import GRADED
from mappa_envs.judges.base import JudgeRequest
from mappa_envs.judges.data_rules import DataRules
from mappa_envs.judges.data_rules.inspector import CHECKED
from mappa_envs.judges.data_rules.rules import BREAKING, RULES, SPOILING, tables
from mappa_envs.judges.requests import make_request
from mappa_envs.topologies.pipeline import ACCEPTED, pipeline
from mappa_envs.transcript import ToolResult, Turn, Verdict

DUTIES = {"engineer": "prepare", "modeler": "fit", "analyst": "submit"}
KEYS = [rule.key for rules in RULES.values() for rule in rules if "." in rule.key]
GRADED_KEYS = {
    "features.useful", "model.honest", "model.beats", "model.half", "model.strong", "submission.beats",
    "submission.half", "submission.strong",
}  # fmt: skip
RAN = ToolResult("python", "code", "ok", "done")
CRASHED = ToolResult("python", "code", "error", "FileNotFoundError")
NOTHING = ToolResult("python", "", "missing", "nothing was run")


def facts(**missed: bool | None) -> dict[str, Any]:
    """Facts in which all is well but for what is named (`features_saved=False`)."""
    met = dict.fromkeys(KEYS, True) | {key.replace("_", ".", 1): value for key, value in missed.items()}
    plain = {key: {"met": value, "note": ""} for key, value in met.items()}
    return {
        CHECKED: {key: value for key, value in plain.items() if key not in GRADED_KEYS},
        GRADED: {key: value for key, value in plain.items() if key in GRADED_KEYS},
    }


def turn(role: str, state: Mapping[str, Any], tool: ToolResult = RAN) -> Turn:
    return Turn(0, 0, f"{role}_0", role, (), "", (tool,), Verdict.skipped("", ""), (), state)


def judge(
    role: str, state: Mapping[str, Any], *earlier: Turn, tool: ToolResult = RAN, duty: str = "", **keywords: Any
) -> Verdict:
    request = JudgeRequest(
        task_prompt=keywords.pop("prompt", ""),
        task_kind="regression",
        agent=f"{role}_0",
        role=role,
        duty=duty or DUTIES[role],
        messages=(),
        action=keywords.pop("action", ""),
        tools=(tool,),
        earlier=earlier,
        truth=None,
        facts=state,
        **keywords,
    )
    (verdict,) = asyncio.run(DataRules().score([request]))
    adds_up(verdict)
    return verdict


def score(*arguments: Any, **keywords: Any) -> float:
    value = judge(*arguments, **keywords).score
    assert value is not None
    return value


GOOD = facts()
BROKEN = facts(features_saved=False)


@pytest.mark.parametrize("role", DUTIES)
def test_good_work_is_worth_ten_with_and_without_ground_truth(role: str) -> None:
    before = (turn("other", GOOD),)
    assert score(role, GOOD, *before) == 10
    assert score(role, {CHECKED: GOOD[CHECKED]}, *before) == 10


@pytest.mark.parametrize(("role", "duty"), DUTIES.items())
def test_every_miss_costs_its_maker(role: str, duty: str) -> None:
    for rule in RULES[duty]:
        if "." in rule.key:
            state = facts(**{rule.key.replace(".", "_", 1): False})
            assert score(role, state, turn("other", GOOD)) == pytest.approx(10 - rule.points), rule.key


def test_a_role_that_did_nothing_gets_nothing() -> None:
    nothing = facts(**{key.replace(".", "_", 1): False for key in KEYS})
    assert score("engineer", nothing, tool=NOTHING) == 0
    assert score("modeler", nothing, turn("engineer", nothing), tool=NOTHING) == 0
    assert score("analyst", nothing, turn("modeler", nothing), tool=NOTHING) == 0


@pytest.mark.parametrize("key", BREAKING["fit"])
def test_a_modeler_is_not_punished_for_what_was_broken_before(key: str) -> None:
    found = facts(**{key.replace(".", "_", 1): False})
    missed = {name: False for name in map(lambda k: k.replace(".", "_", 1), KEYS) if name.startswith("model_")}
    state = facts(**{key.replace(".", "_", 1): False, **missed})
    assert score("modeler", state, turn("engineer", found), tool=CRASHED) > 9
    idle = score("modeler", state, turn("engineer", found), tool=NOTHING)
    assert idle == 0
    # The same result after usable features is the modeler's own.
    assert score("modeler", state, turn("engineer", GOOD), tool=CRASHED) == 0


def test_a_modeler_who_repairs_what_was_broken_has_full_marks() -> None:
    repaired = judge("modeler", GOOD, turn("engineer", BROKEN))
    assert repaired.score == 10
    assert "reached its goal all the same" in repaired.reason
    assert score("modeler", facts(features_saved=False, model_predicts=None), turn("engineer", BROKEN)) < 10


def test_an_analyst_is_not_punished_for_engineer_or_modeler() -> None:
    for broken in (BROKEN, facts(model_saved=False, model_predicts=False)):
        missed = facts(submission_saved=False, submission_valid=False, submission_own=False, submission_beats=False)
        assert score("analyst", missed, turn("modeler", broken), tool=CRASHED) > 9
        assert score("analyst", missed, turn("modeler", GOOD)) < 5


@pytest.mark.parametrize(("cause", "excused"), SPOILING["fit"].items())
def test_bad_features_excuse_bad_scores_and_nothing_else(cause: str, excused: tuple[str, ...]) -> None:
    found = {cause.replace(".", "_", 1): False}
    for key in [rule.key for rule in RULES["fit"] if rule.key.startswith("model.")]:
        state = facts(**found, **{key.replace(".", "_", 1): False})
        assert (score("modeler", state, turn("engineer", facts(**found))) == 10) == (key in excused), key


def test_a_weak_model_is_not_the_analysts_fault() -> None:
    weak = facts(model_beats=False, submission_beats=False)
    assert score("analyst", weak, turn("modeler", weak)) == 10
    assert score("analyst", facts(submission_beats=False), turn("modeler", GOOD)) < 10


def test_who_spoils_usable_files_is_not_excused_and_those_after_it_are() -> None:
    spoilt = facts(features_saved=False, model_predicts=False)
    modeler = judge("modeler", spoilt, turn("engineer", GOOD))
    assert "missed 0.5 left its colleagues' files usable" in modeler.reason
    assert modeler.score == pytest.approx(7.5)
    lost = facts(features_saved=False, model_predicts=False, submission_valid=False)
    assert score("analyst", lost, turn("engineer", GOOD), turn("modeler", spoilt), tool=CRASHED) > 9


def test_an_agents_own_turns_do_not_change_what_it_found() -> None:
    state = facts(features_saved=False, model_predicts=False)
    own = turn("modeler", state, CRASHED)
    assert score("modeler", state, turn("engineer", BROKEN), own, tool=NOTHING) > 9


def test_code_that_fails_costs_a_point() -> None:
    assert score("engineer", GOOD, tool=CRASHED) == 9
    assert score("engineer", GOOD, tool=NOTHING) == 10


def test_work_done_alone_is_scored_by_the_submission() -> None:
    assert score("soloist", GOOD, duty="deliver") == 10
    assert score("soloist", BROKEN, duty="deliver") == 10
    assert score("soloist", facts(submission_valid=False, submission_beats=False), duty="deliver") == 6


def test_a_proposal_names_columns_a_model_and_a_validation() -> None:
    prompt = "Columns:\n- `age`: years\n- `sex`: m or f"
    full = "Use age and sex, fit gradient boosting, and keep a fold for validation."
    assert score("proposer", GOOD, duty="propose", prompt=prompt, action=full) == 10
    assert score("proposer", GOOD, duty="propose", prompt=prompt, action="Fit gradient boosting.") == 3
    assert score("proposer", GOOD, duty="propose", prompt=prompt, action="") == 0


@pytest.mark.parametrize("good", [True, False])
def test_a_checker_is_right_or_wrong(good: bool) -> None:
    state = facts(submission_valid=good)
    accepted, refused = (
        score("verifier", state, duty="check", action=action) for action in (ACCEPTED, "The ids are wrong.")
    )
    assert (accepted, refused) == ((10, 2) if good else (2, 10))


@pytest.mark.parametrize(
    ("state", "due"),
    [
        (facts(features_saved=False, model_saved=False), "engineer"),
        (facts(model_predicts=False), "modeler"),
        (GOOD, "analyst"),
    ],
)
def test_a_hub_calls_whose_files_are_next(state: dict[str, Any], due: str) -> None:
    for name in DUTIES:
        points = score("hub", state, duty="route", action=f"Next: {name}", choices=DUTIES)
        assert points == (10 if name == due else 2)
    assert score("hub", state, duty="route", action="Go on.", choices=DUTIES) == 0


def test_what_cannot_be_scored_is_a_failed_verdict() -> None:
    assert judge("engineer", GOOD, duty="sing").status == "failed"
    assert judge("engineer", {}).status == "failed"


def test_a_judge_that_is_not_told_gets_no_graded_facts() -> None:
    def request(ground_truth: Any, agent: str) -> JudgeRequest:
        return make_request(
            pipeline(), table_task("labels"), ground_truth, agent=agent, messages=(), action="", tools=(),
            earlier=(turn("engineer", GOOD),), facts=GOOD,
        )  # fmt: skip

    for ground_truth, agent, told in (
        ("all", "modeler_0", True),
        ("answer", "modeler_0", False),
        ("answer", "analyst_0", True),
        ("none", "analyst_0", False),
    ):
        made = request(ground_truth, agent)
        assert (GRADED in made.facts) == told == (GRADED in made.earlier[0].facts) == (made.truth is not None)


def test_each_duty_has_ten_points_besides_those_for_broken_work() -> None:
    for rules in RULES.values():
        assert sum(rule.points for rule in rules if rule.key not in ("tried", "handled")) == 10


def test_the_documented_tables_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[3] / "docs" / "data_judge.md").read_text(encoding="utf-8")
    begin, end = "<!-- tables: begin -->\n\n", "\n\n<!-- tables: end -->"
    assert text.partition(begin)[2].partition(end)[0] == tables()
