"""The jobs of maths tasks: code is run for whoever writes it, and the answer is boxed."""

from __future__ import annotations

from mappa_envs.topologies.chain import CHAIN
from mappa_envs.topologies.domain import Domain, Job

_WRITE = "write one fenced ```python block that prints the answer. It is run for you"
_ANSWER = "Give exactly one final answer as \\boxed{ANSWER}."

_CODE = Job(
    duty="compute",
    tool="python",
    turns=2,
    stop_when="code_ok",
    instructions=f"Read the problem, then {_WRITE}; if it fails you may send one corrected block.",
)

MATHS = Domain(
    name="maths",
    team=CHAIN,
    alone=Job(
        duty="work",
        tool="python",
        instructions=(
            f"First {_WRITE}; if it fails, send a corrected block. When it has run, check the output against the "
            f"problem. {_ANSWER}"
        ),
    ),
    answered="\\boxed{",
    propose=_CODE,
    conclude=Job(
        duty="answer",
        instructions=(
            "Check the code and its output against the problem; if they are wrong, work it out yourself. " + _ANSWER
        ),
    ),
    prove=_CODE,
    check=Job(
        duty="check",
        instructions=(
            "Check the code and its output against the problem. If they are right, give exactly one final answer as "
            "\\boxed{ANSWER}. If they are wrong, say in one sentence what to correct, and box nothing."
        ),
    ),
    accepted="\\boxed{",
)
