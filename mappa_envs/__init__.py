"""Multi-agent LLM environments with judge-assigned per-action rewards.

Importing this package registers the built-in environments; `mappa_envs.make("Mappa/MathChat-v0")` makes one.
"""

from envs_registry import make, register, registered, spec
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.registration import register_builtin
from mappa_envs.spaces import AnyText
from mappa_envs.topology import Act, Chain, Layer, Loop, Role, Topology, View
from mappa_envs.transcript import Outcome, Transcript, Turn, Verdict

register_builtin()

__all__ = [
    "Act",
    "AnyText",
    "Chain",
    "Judge",
    "JudgeRequest",
    "Layer",
    "Loop",
    "Outcome",
    "Role",
    "Topology",
    "Transcript",
    "Turn",
    "Verdict",
    "View",
    "make",
    "register",
    "registered",
    "spec",
]
