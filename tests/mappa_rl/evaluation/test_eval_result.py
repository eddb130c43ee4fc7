from __future__ import annotations

from pathlib import Path

import pytest

from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_envs.transcript import Outcome, Transcript
from mappa_rl.config import TrainConfig, load_config
from mappa_rl.errors import EvaluationError
from mappa_rl.evaluation.evaluate import Evaluation, eval_specs, summarise
from mappa_rl.evaluation.records import EpisodeRecord
from mappa_rl.evaluation.result import (
    compare_results,
    eval_settings,
    folder_digest,
    read_result,
    task_digest,
    write_result,
)


def evaluation(won: int, of: int = 6) -> Evaluation:
    return summarise(
        [
            EpisodeRecord(
                i, 0, Transcript("e", "t", f"task-{i}", "k", 0, None, outcome=Outcome(i < won, float(i < won), ""))
            )
            for i in range(of)
        ]
    )


def settings(*overrides: str, adapters: Path | None = None) -> dict[str, object]:
    config = load_config(TrainConfig, None, overrides)
    return eval_settings(config, judge="j-1", adapters=adapters, tasks_sha256="abc")


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_result(tmp_path / "new" / "r.json", evaluation(3), {"tasks_sha256": "abc", "settings": {"seed": 1}})
    result = read_result(tmp_path / "new" / "r.json")
    assert result.evaluation == evaluation(3)
    assert (result.tasks_sha256, result.settings) == ("abc", {"seed": 1})
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["r.json"]


def test_two_results_are_compared_with_their_differing_settings(tmp_path: Path) -> None:
    write_result(tmp_path / "a.json", evaluation(6), {"tasks_sha256": "abc", "settings": settings("seed=1")})
    write_result(tmp_path / "b.json", evaluation(1), {"tasks_sha256": "abc", "settings": settings("seed=2")})
    comparison, differing = compare_results(tmp_path / "a.json", tmp_path / "b.json")
    assert (comparison.better, comparison.worse) == (5, 0)
    assert comparison.difference.mean == pytest.approx(5 / 6)
    assert comparison.p_value == pytest.approx(2 / 32)
    assert differing == [("seed", "1", "2")]


def test_results_on_different_tasks_are_not_compared(tmp_path: Path) -> None:
    write_result(tmp_path / "a.json", evaluation(6), {"tasks_sha256": "abc"})
    write_result(tmp_path / "b.json", evaluation(1, of=4), {"tasks_sha256": "abd"})
    with pytest.raises(EvaluationError, match=r"different tasks(.|\n)*6 and 4 tasks, 4 ids in common"):
        compare_results(tmp_path / "a.json", tmp_path / "b.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tasks_sha256": 3}', '{"tasks_sha256": "abc"}', "\xff"])
def test_a_file_that_is_no_result_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(EvaluationError):
        read_result(tmp_path / "r.json")
    with pytest.raises(EvaluationError, match=r"missing\.json cannot be read(.|\n)*No such file"):
        read_result(tmp_path / "missing.json")


def test_the_digest_of_tasks_tells_other_tasks_apart() -> None:
    specs = eval_specs(5, 2, None)
    first = task_digest(ProceduralSource("eval", 0), specs)
    assert first == task_digest(ProceduralSource("eval", 0), eval_specs(5, 1, None))
    others = (ProceduralSource("eval", 1), ProceduralSource("train", 0), ProceduralSource("eval", 0, levels=(4,)))
    assert first not in {task_digest(source, specs) for source in others}
    assert first != task_digest(ProceduralSource("eval", 0), eval_specs(6, 2, None))


def test_the_settings_know_the_contents_of_the_adapters_but_not_their_place(tmp_path: Path) -> None:
    for name, weights in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name / "solver_0").mkdir(parents=True)
        (tmp_path / name / "solver_0" / "adapter_model.safetensors").write_bytes(weights)
        (tmp_path / name / "README.md").write_text(name)
    digests = [folder_digest(tmp_path / name) for name in "abc"]
    assert digests[0] == digests[1] != digests[2]
    assert settings(adapters=tmp_path / "a") != settings(adapters=tmp_path / "c")
    assert settings()["adapters_sha256"] is None


@pytest.mark.parametrize(
    ("override", "matters"),
    [
        ("eval.samples=2", True),
        ("eval.temperature=0.1", True),
        ("policy.model=/m", True),
        ("policy.max_new_tokens=9", True),
        ("env.kwargs.topology=chain", True),
        ("rollout.concurrency=3", True),
        ("seed=5", True),
        ("steps=5", False),
        ("optim.lr=1e-3", False),
        ("eval.every=3", False),
    ],
)
def test_settings_hold_what_episodes_depend_on_and_nothing_else(override: str, matters: bool) -> None:
    assert (settings(override) != settings()) == matters
