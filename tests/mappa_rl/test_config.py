from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, field_validator

from envs_registry.errors import ConfigError, MappaError
from mappa_rl.config import Config, TrainConfig, dump_config, load_config, to_overrides, validate, yaml_text
from mappa_rl.config.errors import dotted_keys, nearest


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(*overrides: str, model: type[BaseModel] = TrainConfig) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(model, None, overrides)
    return caught.value


# --- what loads ---


def test_without_file_and_overrides_everything_has_its_default() -> None:
    assert load_config(TrainConfig) == TrainConfig()


def test_overrides_win_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 3\noptim: {lr: 1e-5, betas: [0.8, 0.9]}\nenv:\n  kwargs: {topology: chain}\n")
    config = load_config(TrainConfig, path, ["optim.lr=2e-5", "env.kwargs.tasks.levels=[1, 2]", "optim.lr=3e-5"])
    assert (config.seed, config.optim.lr, config.optim.betas, config.steps) == (
        3,
        3e-5,
        (0.8, 0.9),
        TrainConfig().steps,
    )
    assert config.env.kwargs == {"topology": "chain", "tasks": {"levels": [1, 2]}}


def test_an_empty_file_and_a_section_left_empty_before_overrides_are_fine(tmp_path: Path) -> None:
    assert load_config(TrainConfig, write(tmp_path, "# nothing yet\n")) == TrainConfig()
    assert load_config(TrainConfig, write(tmp_path, "optim:\n"), ["optim.lr=1"]).optim.lr == 1


def test_values_are_what_they_look_like() -> None:
    config = load_config(
        TrainConfig,
        None,
        [
            "run_dir=2026-01-01",
            "policy.model=no",
            "optim.lr=1e-6",
            "policy.lora_targets=[q, v]",
            "env.kwargs.x=",
        ],
    )
    assert config.run_dir == Path("2026-01-01") and config.policy.model == "no" and config.optim.lr == 1e-6
    assert config.policy.lora_targets == ("q", "v") and config.env.kwargs == {"x": None}


def test_settings_are_frozen_and_described() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        TrainConfig().seed = 3
    undescribed = [key for key in dotted_keys(TrainConfig) if not description(TrainConfig, key)]
    assert not undescribed


def description(model: type[BaseModel], key: str) -> str | None:
    first, _, rest = key.partition(".")
    field = model.model_fields[first]
    if not rest:
        return field.description
    nested = field.annotation
    assert isinstance(nested, type) and issubclass(nested, BaseModel)
    return description(nested, rest)


# --- round trips ---

texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
looks_like_something_else = st.sampled_from(
    "1e-6|0o17|0x1F|no|null|~|12:30|1_000|2026-01-01|.inf|| x |a: b|#|<<|=|- x|{|%|\t|a\n\nb|'|\"".split("|")
)
plain = st.recursive(
    scalars | looks_like_something_else,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | looks_like_something_else, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def train_configs(draw: st.DrawFn) -> TrainConfig:
    return validate(
        TrainConfig,
        {
            "seed": draw(st.integers(0, 2**63)),
            "run_dir": draw(st.none() | st.sampled_from(["runs/a", "/tmp/ü b", "2026-01-01", "1"])),
            "reward": draw(st.sampled_from(["process", "outcome"])),
            "env": {
                "id": draw(texts | looks_like_something_else),
                "kwargs": draw(st.dictionaries(texts, plain, max_size=3)),
            },
            "optim": {"lr": draw(st.floats(1e-300, 1e300)), "betas": [draw(st.floats(0, 1)), draw(st.floats(0, 1))]},
            "policy": {
                "lora_targets": draw(texts | st.lists(texts, max_size=3)),
                "gradient_checkpointing": draw(st.booleans()),
                "attention": draw(st.none() | texts | looks_like_something_else),
            },
        },
    )


@given(train_configs())
def test_settings_survive_yaml_and_overrides(config: TrainConfig) -> None:
    overrides = to_overrides(config)
    assert load_config(TrainConfig, None, overrides) == config
    # Files are read back as files: through bytes.
    text = dump_config(config).encode("utf-8").decode("utf-8")
    assert validate(TrainConfig, yaml_text.parse(text) or {}) == config


def test_a_dumped_file_loads(tmp_path: Path) -> None:
    config = load_config(TrainConfig, None, ["optim.lr=1e-6", "env.kwargs.judge.model='7'", "run_dir=runs/ünder 1"])
    assert load_config(TrainConfig, write(tmp_path, dump_config(config))) == config


# --- what is refused, and how ---


@pytest.mark.parametrize(
    ("override", "key", "meant"),
    [
        ("lr=1e-5", "lr", "optim.lr"),
        ("optim.learning_rat=1", "optim.learning_rat", "optim.lr"),
        ("optim.lrr=1", "optim.lrr", "optim.lr"),
        ("optm.lr=1", "optm", "optim"),
        ("rolout.temperature=1", "rolout", "rollout"),
        ("policy.temperature=1", "policy.temperature", "rollout.temperature' or 'eval.temperature"),
        ("policy.lora_rnk=4", "policy.lora_rnk", "policy.lora_rank"),
        ("Seed=4", "Seed", "seed"),
        ("--seed=4", "--seed", "seed"),
        ("xyzzy=4", "xyzzy", None),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_one(override: str, key: str, meant: str | None) -> None:
    error = refusal(override)
    assert f"{key!r} is wrong" in str(error) and error.expected.startswith("one of the keys ")
    assert error.fix == (f"did you mean '{meant}'?" if meant else "leave it out")


@pytest.mark.parametrize(
    ("override", "key", "expected", "got", "fix"),
    [
        ("seed=three", "seed", "valid integer", "the text 'three'", "a number, without quotes"),
        ("seed='3'", "seed", "valid integer", "the text '3'", "a number, without quotes"),
        ("seed=true", "seed", "valid integer", "True (bool)", ""),
        ("seed=1.5", "seed", "valid integer", "1.5 (float)", ""),
        ("seed=-1", "seed", "greater than or equal to 0", "-1 (int)", ""),
        ("seed=", "seed", "valid integer", "None (NoneType)", ""),
        ("optim.lr=0", "optim.lr", "greater than 0", "0 (int)", ""),
        ("optim.lr=.inf", "optim.lr", "finite", "inf", ""),
        ("optim.lr=.nan", "optim.lr", "finite", "nan", ""),
        ("optim.betas=[0.9]", "optim.betas.1", "required", "nothing", ""),
        ("optim.betas=[0.9, x]", "optim.betas.1", "valid number", "the text 'x'", ""),
        ("optim.betas=[0, 0, 0]", "optim.betas", "at most 2", "[0, 0, 0]", ""),
        ("optim=3", "optim", "a mapping", "3 (int)", ""),
        ("env.kwargs=[1]", "env.kwargs", "", "[1] (list)", ""),
        ("reward=proces", "reward", "'process', 'outcome' or 'mixed'", "'proces'", "did you mean 'process'?"),
        ("policy.gradient_checkpointing='yes'", "policy.gradient_checkpointing", "boolean", "'yes'", "true or false"),
        ("run_dir=3", "run_dir", "string", "3 (int)", ""),
        ("policy.lora_targets=3", "policy.lora_targets", "a valid string or a list", "3 (int)", ""),
    ],
)
def test_a_wrong_value_is_named(override: str, key: str, expected: str, got: str, fix: str) -> None:
    error = refusal(override)
    assert f"{key!r} is wrong" in error.what
    assert expected in error.expected and got in error.got and fix in error.fix


def test_all_wrong_settings_are_named_at_once() -> None:
    error = refusal("seed=x", "optim.lr=-1", "stepz=3")
    assert "'seed', 'optim.lr', 'stepz' are wrong" in error.what
    assert "optim.lr: greater than 0" in error.expected and "stepz: did you mean 'steps'?" in error.fix


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", r"(?s)'seed' has no value.*dotted\.key=value.*seed=VALUE"),
        ("=3", "has no key"),
        ("", "has no value"),
        ("optim..lr=3", "has no key"),
        (".seed=3", "has no key"),
        ("optim.betas=[1,", r"(?s)'optim.betas' is not YAML.*got: '\[1,'"),
        ("env.kwargs={a: 1, a: 2}", r"(?s)'env.kwargs' is not YAML.*'a' occurs twice"),
        ("env.kwargs={1: 2}", r"(?s)'env.kwargs' is not YAML.*keys must be text, found 1"),
        ("run_dir=!!python/name:os.system", r"(?s)not YAML.*python/name"),
        ("run_dir=a: b: c", "not YAML"),
        ("run_dir=\x00", "not YAML"),
    ],
)
def test_an_override_that_cannot_be_read_is_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(TrainConfig, None, [override])


def test_an_override_through_a_value_without_keys_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 3\n")
    with pytest.raises(ConfigError, match=r"(?s)'seed.x.y' leads through 'seed'.*got: 3"):
        load_config(TrainConfig, path, ["seed.x.y=1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nsteps: 2\nseed: 3\n", r"(?s)not valid YAML.*'seed' occurs twice.*line 3"),
        ("optim:\n  lr: 1\n  lr: 2\n", r"(?s)'lr' occurs twice.*line 3"),
        ("seed: [1\n", r"(?s)not valid YAML.*line 2"),
        ("- seed\n- steps\n", r"(?s)holds no mapping.*got: list"),
        ("seed", r"(?s)holds no mapping.*got: str"),
        ("3: 4\n", r"(?s)keys must be text, found 3"),
        ("seed: 1\n---\nseed: 2\n", r"(?s)not valid YAML.*another document"),
        ("seed: !!python/object/apply:os.system [x]\n", r"(?s)not valid YAML.*python/object"),
        ("env: &a {kwargs: *a}\n", r"(?s)not valid YAML.*a"),
        ("optim:\n  lrr: 1\n", r"(?s)run.yaml: 'optim.lrr' is wrong.*did you mean 'optim.lr'"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(TrainConfig, write(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)missing.yaml' cannot be read.*No such file"):
        load_config(TrainConfig, tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"(?s)cannot be read.*Is a directory"):
        load_config(TrainConfig, tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("policy: {model: ä}".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"(?s)cannot be read.*UTF-8"):
        load_config(TrainConfig, latin)


@given(st.text(max_size=30), st.text(max_size=20))
def test_whatever_is_typed_gives_settings_or_a_named_error(override: str, value: str) -> None:
    for text in (override, f"policy.model={value}", f"{override}={value}", f"env.kwargs.{override}={value}"):
        try:
            config = load_config(TrainConfig, None, [text])
        except MappaError as error:
            assert error.expected and error.got
        else:
            assert isinstance(config, TrainConfig)


# --- any model ---


class Jsonl(Config):
    source: Literal["jsonl"] = "jsonl"
    path: Path


class Hub(Config):
    source: Literal["hub"] = "hub"
    name: str = ""
    rows: int = 1


class Holder(Config):
    tasks: Annotated[Jsonl | Hub, Field(discriminator="source")] = Hub()
    extra: Hub | None = None
    even: int = 0

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ConfigError("odd", expected="an even number", got=str(value))
        return value


def test_any_model_can_be_loaded_unions_and_optional_sections_too() -> None:
    assert load_config(Holder, None, ["tasks.source=jsonl", "tasks.path=a.jsonl"]).tasks == Jsonl(path=Path("a.jsonl"))
    assert load_config(Holder, None, ["extra.name=x"]).extra == Hub(name="x")
    assert dotted_keys(Holder) == (
        *("tasks", "tasks.source", "tasks.path", "tasks.name", "tasks.rows"),
        *("extra", "extra.source", "extra.name", "extra.rows", "even"),
    )


@pytest.mark.parametrize(
    ("overrides", "key", "detail"),
    [
        (["tasks.source=jsonl"], "tasks.path", "required"),
        (["tasks.source=hub", "tasks.rows=x"], "tasks.rows", "valid integer"),
        (["tasks.source=hub", "tasks.nam=x"], "tasks.nam", "did you mean 'tasks.name'"),
        (["tasks.source=hubb"], "tasks", "'hub'"),
        (["tasks.rows=2"], "tasks", "source"),
        (["extra.rows=x"], "extra.rows", "valid integer"),
        (["even=3"], "even", "an even number"),
    ],
)
def test_errors_inside_unions_name_the_key_as_it_is_written(overrides: list[str], key: str, detail: str) -> None:
    error = refusal(*overrides, model=Holder)
    assert f"{key!r} is wrong" in error.what and detail in str(error)


class Tree(Config):
    left: Tree | None = None
    value: int = 0


def test_a_model_that_contains_itself_has_finitely_many_keys() -> None:
    assert dotted_keys(Tree) == ("left", "value")
    assert load_config(Tree, None, ["left.left.value=3"]).left == Tree(left=Tree(value=3))


@given(st.lists(st.text("abcde_", min_size=1, max_size=6), min_size=1, max_size=3))
def test_the_nearest_keys_are_always_known_ones(path: list[str]) -> None:
    known = dotted_keys(TrainConfig)
    assert set(nearest(path, known)) <= set(known)


def test_errors_keep_long_values_short() -> None:
    data: dict[str, Any] = {"seed": ["x" * 100] * 100}
    with pytest.raises(ConfigError) as caught:
        validate(TrainConfig, data)
    assert len(str(caught.value)) < 500
