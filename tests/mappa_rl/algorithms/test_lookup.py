from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from row_cases import team_batch

from envs_registry.errors import ConfigError, EntryPointError
from mappa_rl.algorithms import GRPO, ReinforcePP, algorithm_names, make_algorithm

Install = Callable[[str, str, str], None]

SIGN = """
from mappa_rl.algorithms import Algorithm
from mappa_rl.algorithms.advantages import spread


class Sign(Algorithm):
    threshold: float = 0.5

    def advantages(self, batch):
        return self.finish(spread((batch.rewards > self.threshold) * 2.0 - 1, batch.mask), batch)


def build(*, threshold):
    return Sign(threshold=threshold)


def nothing():
    return None


number = 3
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution: a module plus its metadata in a folder on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(distribution: str, source: str, entry_points: str) -> None:
        module = distribution.replace("-", "_")
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(source)
        meta = tmp_path / f"{module}-1.0.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (meta / "entry_points.txt").write_text(f"[mappa.algorithms]\n{entry_points}\n")

    return put


def test_built_in_algorithms_are_made_by_name_with_their_settings() -> None:
    assert make_algorithm("reinforce_pp", kl_coef=0.5) == ReinforcePP(kl_coef=0.5)
    assert make_algorithm("grpo", scale_by_std=False) == GRPO(scale_by_std=False)
    for name in ("reinforce_pp", "reinforce_pp_baseline", "grpo", "rloo", "dr_mas", "ppo"):
        assert name in algorithm_names() and make_algorithm(name)


@pytest.mark.parametrize(("name", "meant"), [("reinforcepp", "reinforce_pp"), ("gpro", "grpo"), ("drmas", "dr_mas")])
def test_an_unknown_name_gets_the_nearest_one(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)no algorithm '{name}'.*grpo.*did you mean '{meant}'"):
        make_algorithm(name)


def test_a_wrong_setting_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"(?s)GRPO: 'scal_by_std' is wrong.*did you mean 'scale_by_std'"):
        make_algorithm("grpo", scal_by_std=False)


def test_an_algorithm_of_another_distribution_is_found_by_its_entry_point(install: Install) -> None:
    install("acme-sign", SIGN, "sign = acme_sign:Sign\nbuilt_sign = acme_sign:build")
    assert {"sign", "built_sign"} <= set(algorithm_names())
    algorithm = make_algorithm("sign", threshold=0.2)
    advantages = algorithm.advantages(team_batch())
    assert set(advantages.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert make_algorithm("built_sign", threshold=0.2) == algorithm
    with pytest.raises(ConfigError, match="did you mean 'sign'"):
        make_algorithm("signn")
    with pytest.raises(ConfigError, match=r"(?s)no keyword 'thresold'.*did you mean 'threshold'"):
        make_algorithm("built_sign", thresold=0.2)


def test_one_file_on_the_path_is_enough(install: Install) -> None:
    install("my-sign", SIGN, "")
    assert type(make_algorithm("my_sign:Sign")).__name__ == "Sign"
    with pytest.raises(EntryPointError, match=r"(?s)no 'Sing'.*did you mean 'Sign'"):
        make_algorithm("my_sign:Sing")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("import no_such_module_at_all", "broken:Sign", "No module named 'no_such_module_at_all'"),
        ("raise RuntimeError('no licence')", "broken:Sign", "RuntimeError: no licence"),
        ("raise SystemExit(3)", "broken:Sign", "SystemExit: 3"),
        (SIGN, "broken:Missing", "Missing"),
        (SIGN, "broken:number", "cannot be called"),
        (SIGN, "broken:nothing", "makes no algorithm"),
    ],
)
def test_a_broken_plugin_is_named_loudly(install: Install, source: str, target: str, message: str) -> None:
    install("broken", source, f"sign = {target}")
    with pytest.raises(EntryPointError, match=message):
        make_algorithm("sign")


def test_a_broken_plugin_does_not_touch_other_algorithms(install: Install) -> None:
    install("broken", "raise RuntimeError", "sign = broken:Sign")
    assert make_algorithm("rloo")


def test_a_name_that_is_declared_twice_is_refused(install: Install) -> None:
    install("acme-grpo", SIGN, "grpo = acme_grpo:Sign\nsign = acme_grpo:Sign")
    install("other-sign", SIGN, "sign = other_sign:Sign")
    declared = r"(?s)'grpo' is declared more than once.*built in, grpo = acme_grpo:Sign of acme-grpo"
    with pytest.raises(EntryPointError, match=declared):
        make_algorithm("grpo")
    with pytest.raises(EntryPointError, match=r"(?s)'sign' is declared more than once.*of"):
        make_algorithm("sign")
