"""Settings: models, YAML, `key=value` overrides, and errors that name the key."""

from mappa_rl.config.settings import (
    AlgorithmConfig,
    Config,
    EnvConfig,
    EvalConfig,
    OptimConfig,
    PolicyConfig,
    RolePolicyConfig,
    RolloutConfig,
    TrainConfig,
    dump_config,
    load_config,
    to_overrides,
    validate,
)

__all__ = [
    "AlgorithmConfig",
    "Config",
    "EnvConfig",
    "EvalConfig",
    "OptimConfig",
    "PolicyConfig",
    "RolePolicyConfig",
    "RolloutConfig",
    "TrainConfig",
    "dump_config",
    "load_config",
    "to_overrides",
    "validate",
]
