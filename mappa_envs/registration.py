"""The built-in ids."""

from envs_registry import register


def register_builtin() -> None:
    """Register every built-in environment under the same id in all three registries."""
    register(
        "Mappa/MathChat-v0",
        "mappa_envs.envs.math_chat:MathChat",
        parallel_entry_point="mappa_envs.envs.math_chat:parallel",
        gym_entry_point="mappa_envs.envs.math_chat:gym",
        description="Competition maths: Solver -> Code Executor -> Verifier",
    )
    register(
        "Mappa/DataPipeline-v0",
        "mappa_envs.envs.data_pipeline:DataPipeline",
        parallel_entry_point="mappa_envs.envs.data_pipeline:parallel",
        gym_entry_point="mappa_envs.envs.data_pipeline:gym",
        description="Data analysis on real tables: Data Engineer -> Modeler -> Analyst",
    )
