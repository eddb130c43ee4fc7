from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import counting_toy
import gymnasium
import pettingzoo
import pytest
from counting_toy import CountingConfig, CountingEnv, CountingGym, CountingParallel
from pettingzoo.test import api_test

import envs_registry
from envs_registry import ConfigError, EntryPointError, EnvIdError, RegistryError, UnknownEnvError

AEC = "counting_toy:CountingEnv"
FACES = {
    "parallel_entry_point": "counting_toy:CountingParallel",
    "gym_entry_point": "counting_toy:CountingGym",
}


class TestRegister:
    @pytest.mark.parametrize("as_string", [True, False])
    def test_one_id_works_in_all_three_registries(self, as_string: bool) -> None:
        points: list[Any] = [CountingEnv, CountingParallel, CountingGym]
        if as_string:
            points = [f"counting_toy:{p.__name__}" for p in points]
        envs_registry.register(
            "Toy/Counting-v0",
            points[0],
            kwargs={"rounds": 5},
            parallel_entry_point=points[1],
            gym_entry_point=points[2],
        )
        env = pettingzoo.make("aec", "Toy/Counting-v0")
        assert isinstance(env, CountingEnv) and env.rounds == 5
        parallel = pettingzoo.make("parallel", "Toy/Counting-v0", rounds=6)
        assert isinstance(parallel, CountingParallel) and parallel.rounds == 6
        gym_env = gymnasium.make("Toy/Counting-v0")
        assert isinstance(gym_env.unwrapped, CountingGym) and gym_env.unwrapped.rounds == 5

    def test_without_a_gymnasium_face_gymnasium_does_not_know_the_id(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC)
        assert "Toy/Counting-v0" not in gymnasium.registry
        assert "Toy/Counting-v0" not in pettingzoo.parallel_registry

    def test_kwargs_changed_after_registration_change_nothing(self) -> None:
        log: list[str] = []
        spec = envs_registry.register("Toy/Counting-v0", AEC, kwargs={"log": log})
        log.append("changed")
        assert spec.kwargs["log"] == []
        assert pettingzoo.make("aec", "Toy/Counting-v0").log == []

    def test_a_kwarg_that_cannot_be_copied_is_refused_by_name_and_nothing_is_registered(self) -> None:
        with pytest.raises(RegistryError, match=r"kwarg 'log' cannot be deep-copied(.|\n)*factory"):
            envs_registry.register("Toy/Counting-v0", AEC, kwargs={"log": threading.Lock()})
        assert "Toy/Counting-v0" not in pettingzoo.aec_registry
        with pytest.raises(UnknownEnvError):
            envs_registry.spec("Toy/Counting-v0")

    @pytest.mark.parametrize("kwargs", [[("a", 1)], {1: 2}, "rounds"])
    def test_kwargs_of_another_form_are_refused(self, kwargs: Any) -> None:
        with pytest.raises(RegistryError, match="string keys"):
            envs_registry.register("Toy/Counting-v0", AEC, kwargs=kwargs)

    @pytest.mark.parametrize("point", ["counting_toy", "a:b:c", "counting toy:X", ":X", "x:", "", None, 3])
    def test_what_is_no_entry_point_is_refused(self, point: Any) -> None:
        with pytest.raises(RegistryError, match=r"package\.module:attribute"):
            envs_registry.register("Toy/Counting-v0", point)

    def test_an_id_without_version_is_refused(self) -> None:
        with pytest.raises(EnvIdError):
            envs_registry.register("Toy/Counting", AEC)

    def test_a_taken_id_is_refused_and_the_first_registration_stays(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, kwargs={"rounds": 1})
        with pytest.raises(RegistryError, match="registered already"):
            envs_registry.register("Toy/Counting-v0", AEC, kwargs={"rounds": 2})
        assert envs_registry.make("Toy/Counting-v0").rounds == 1
        assert pettingzoo.make("aec", "Toy/Counting-v0").rounds == 1

    def test_registering_the_same_again_is_no_error(self) -> None:
        for _ in range(2):
            envs_registry.register("Toy/Counting-v0", AEC, kwargs={"config": CountingConfig(target=3)}, **FACES)
        assert [s.id for s in envs_registry.registered("Toy")] == ["Toy/Counting-v0"]

    def test_a_reloaded_module_may_register_its_classes_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "reloaded_toy.py").write_text(
            "import envs_registry, pydantic\n"
            "class C(pydantic.BaseModel):\n    a: int = 1\n"
            "def make(config): ...\n"
            "envs_registry.register('Toy/Reload-v0', make, kwargs={'config': C(a=2)})\n"
        )
        module = importlib.import_module("reloaded_toy")
        first = module.make
        assert importlib.reload(module).make is not first
        assert envs_registry.spec("Toy/Reload-v0").entry_point is module.make
        assert pettingzoo.spec("aec", "Toy/Reload-v0").entry_point is module.make

    def test_two_different_lambdas_are_two_registrations(self) -> None:
        envs_registry.register("Toy/Counting-v0", lambda: CountingEnv(rounds=1))
        with pytest.raises(RegistryError, match="registered already"):
            envs_registry.register("Toy/Counting-v0", lambda: CountingEnv(rounds=2))

    def test_overwrite_replaces_every_face(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, **FACES)
        envs_registry.register("Toy/Counting-v0", AEC, kwargs={"rounds": 9}, overwrite=True)
        assert envs_registry.spec("Toy/Counting-v0").faces == ("aec",)
        assert pettingzoo.make("aec", "Toy/Counting-v0").rounds == 9
        assert "Toy/Counting-v0" not in pettingzoo.parallel_registry
        assert "Toy/Counting-v0" not in gymnasium.registry

    def test_an_id_that_pettingzoo_knows_already_is_not_taken_over_in_silence(self) -> None:
        pettingzoo.register("aec", "Toy/Foreign-v0", CountingEnv)
        with pytest.raises(RegistryError, match="PettingZoo"):
            envs_registry.register("Toy/Foreign-v0", AEC)

    def test_a_refusal_by_gymnasium_leaves_no_half_registration(self) -> None:
        gymnasium.register("Toy/Plain", entry_point=CountingGym)
        with pytest.raises(RegistryError, match="Gymnasium refuses"):
            envs_registry.register("Toy/Plain-v0", AEC, **FACES)
        assert "Toy/Plain-v0" not in pettingzoo.aec_registry
        with pytest.raises(UnknownEnvError):
            envs_registry.spec("Toy/Plain-v0")


class TestMake:
    def test_the_made_environment_passes_pettingzoos_api_test(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC)
        api_test(envs_registry.make("Toy/Counting-v0"), num_cycles=10)

    @pytest.mark.parametrize(
        ("face", "kind"), [("aec", CountingEnv), ("parallel", CountingParallel), ("gym", CountingGym)]
    )
    def test_each_face_has_its_type_and_takes_the_same_keywords(self, face: Any, kind: type) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, kwargs={"rounds": 3}, **FACES)
        config = CountingConfig(target=1)
        env = envs_registry.make("Toy/Counting-v0", face=face, config=config).unwrapped
        assert type(env) is kind
        assert env.rounds == 3 and env.config is config

    def test_the_gymnasium_face_can_be_made_again_from_its_spec(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, **FACES)
        env = envs_registry.make("Toy/Counting-v0", face="gym", rounds=7)
        assert env.spec is not None and env.spec.id == "Toy/Counting-v0"
        assert gymnasium.make(env.spec).unwrapped.rounds == 7

    def test_registered_kwargs_are_copied_at_each_make(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, kwargs={"log": []})
        first, second = (envs_registry.make("Toy/Counting-v0") for _ in range(2))
        first.log.append("mine")
        assert second.log == [] and envs_registry.make("Toy/Counting-v0").log == []

    def test_without_version_the_newest_is_made_and_ten_is_newer_than_nine(self) -> None:
        for version in (9, 10, 1):
            envs_registry.register(f"Toy/Counting-v{version}", AEC, kwargs={"rounds": version})
        assert envs_registry.make("Toy/Counting").rounds == 10
        assert envs_registry.make("Toy/Counting-v1").rounds == 1

    def test_a_spec_can_be_made_without_being_registered(self) -> None:
        spec = envs_registry.EnvSpec("Toy/Loose-v0", AEC, {"rounds": 4}, gym_entry_point=CountingGym)
        assert envs_registry.make(spec).rounds == 4
        assert envs_registry.make(spec, face="gym").unwrapped.rounds == 4

    def test_a_module_prefix_imports_the_module_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "prefixed_toy.py").write_text(
            "import envs_registry\nenvs_registry.register('Toy/Prefixed-v0', 'counting_toy:CountingEnv')\n"
        )
        assert isinstance(envs_registry.make("prefixed_toy:Toy/Prefixed-v0"), CountingEnv)
        assert "prefixed_toy" in sys.modules
        with pytest.raises(UnknownEnvError, match="although 'prefixed_toy' was imported"):
            envs_registry.make("prefixed_toy:Toy/Other-v0")

    def test_a_module_prefix_that_fails_to_import_is_named_with_its_reason(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "broken_toy.py").write_text("raise RuntimeError('out of cheese')\n")
        with pytest.raises(EntryPointError, match=r"broken_toy(.|\n)*RuntimeError: out of cheese"):
            envs_registry.make("broken_toy:Toy/Counting-v0")
        with pytest.raises(EntryPointError, match="no_such_module_anywhere") as caught:
            envs_registry.make("no_such_module_anywhere:Toy/Counting-v0")
        assert isinstance(caught.value, ImportError)
        for prefix in ("", "a b", ".relative"):
            with pytest.raises(EntryPointError, match="dotted module name"):
                envs_registry.make(f"{prefix}:Toy/Counting-v0")

    def test_an_unknown_version_lists_those_there_are(self) -> None:
        for version in (0, 2, 10):
            envs_registry.register(f"Toy/Counting-v{version}", AEC)
        with pytest.raises(UnknownEnvError, match=r"v0, v2, v10(.|\n)*'Toy/Counting-v10'"):
            envs_registry.make("Toy/Counting-v3")

    @pytest.mark.parametrize("wrong", ["Toy/Countin-v0", "Toi/Counting-v0", "toy/counting", "Toy/Conuting"])
    def test_a_misspelt_id_gets_a_suggestion(self, wrong: str) -> None:
        envs_registry.register("Toy/Counting-v0", AEC)
        with pytest.raises(UnknownEnvError, match="did you mean 'Toy/Counting'"):
            envs_registry.make(wrong)

    def test_an_unknown_name_lists_its_namespace_and_an_unknown_namespace_lists_the_namespaces(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC)
        with pytest.raises(UnknownEnvError, match="one of Toy/Counting"):
            envs_registry.make("Toy/Zzzzzzzzz-v0")
        with pytest.raises(UnknownEnvError, match=r"one of the namespaces .*Toy"):
            envs_registry.make("Qqqqqqqqq/Zzzzzzzzzz-v0")

    def test_an_unknown_keyword_names_the_nearest_valid_one(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, **FACES)
        for face in envs_registry.FACES:
            with pytest.raises(ConfigError, match=r"no keyword 'round'(.|\n)*did you mean 'rounds'"):
                envs_registry.make("Toy/Counting-v0", face=face, round=3)

    def test_a_registered_keyword_that_the_entry_point_does_not_take_is_refused(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, kwargs={"qqqq": 3})
        with pytest.raises(ConfigError, match=r"'qqqq'(.|\n)*leave 'qqqq' out"):
            envs_registry.make("Toy/Counting-v0")

    def test_a_factory_with_open_keywords_takes_any_but_must_get_the_required_ones(self) -> None:
        envs_registry.register("Toy/Counting-v0", "counting_toy:make_counting")
        assert envs_registry.make("Toy/Counting-v0", rounds=1, log=["x"]).log == ["x"]
        with pytest.raises(ConfigError, match="needs 'rounds'"):
            envs_registry.make("Toy/Counting-v0", log=[])

    def test_a_type_error_inside_the_factory_is_not_mistaken_for_a_wrong_keyword(self) -> None:
        envs_registry.register("Toy/Counting-v0", "counting_toy:make_type_error")
        with pytest.raises(TypeError, match=r"^from inside the factory$"):
            envs_registry.make("Toy/Counting-v0")

    def test_an_entry_point_that_makes_something_else_is_an_error(self) -> None:
        envs_registry.register("Toy/Counting-v0", "counting_toy:make_nothing", parallel_entry_point=AEC)
        for face in ("aec", "parallel"):
            with pytest.raises(RegistryError, match="made the wrong thing"):
                envs_registry.make("Toy/Counting-v0", face=face)

    @pytest.mark.parametrize(
        ("point", "message"),
        [
            ("counting_toy:CountingEnw", "did you mean 'CountingEnv'"),
            ("counting_toy:NOT_CALLABLE", "is not callable"),
            ("no_such_module_anywhere:X", "no_such_module_anywhere"),
        ],
    )
    def test_an_entry_point_that_cannot_be_loaded_is_named(self, point: str, message: str) -> None:
        envs_registry.register("Toy/Counting-v0", point)
        with pytest.raises(EntryPointError, match=message):
            envs_registry.make("Toy/Counting-v0")

    def test_a_nested_attribute_is_an_entry_point(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(CountingEnv, "nested", counting_toy.make_counting, raising=False)
        envs_registry.register("Toy/Counting-v0", "counting_toy:CountingEnv.nested", kwargs={"rounds": 2})
        assert envs_registry.make("Toy/Counting-v0").rounds == 2

    def test_a_face_that_was_not_registered_lists_those_that_were(self) -> None:
        envs_registry.register("Toy/Counting-v0", AEC)
        with pytest.raises(UnknownEnvError, match=r"no 'gym' face(.|\n)*'aec'(.|\n)*gym_entry_point"):
            envs_registry.make("Toy/Counting-v0", face="gym")
        with pytest.raises(ConfigError, match="'aec', 'parallel', 'gym'"):
            envs_registry.make("Toy/Counting-v0", face="sideways")  # type: ignore[call-overload]

    @pytest.mark.parametrize("bad", [None, 3, "Counting-v0", "Toy Counting"])
    def test_what_is_no_id_is_refused(self, bad: Any) -> None:
        with pytest.raises(EnvIdError):
            envs_registry.make(bad)


class TestRegistered:
    def test_ids_come_sorted_by_number_and_can_be_limited_to_a_namespace(self) -> None:
        for id in ("Toy/B-v10", "Toy/B-v9", "Toy/A-v0", "Aaa/Z-v0"):
            envs_registry.register(id, AEC)
        assert [s.id for s in envs_registry.registered("Toy")] == ["Toy/A-v0", "Toy/B-v9", "Toy/B-v10"]
        assert envs_registry.registered()[0].id == "Aaa/Z-v0"
        assert envs_registry.registered("Nobody") == ()

    def test_pprint_shows_id_faces_and_description(self, capsys: pytest.CaptureFixture[str]) -> None:
        envs_registry.register("Toy/Counting-v0", AEC, description="adds numbers", **FACES)
        envs_registry.pprint_registry()
        (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Toy/Counting-v0")]
        assert line.split() == ["Toy/Counting-v0", "aec,", "parallel,", "gym", "adds", "numbers"]
