"""The paper's maths team: Solver -> Code Executor -> Verifier (section 4, MathChat)."""

from __future__ import annotations

from mappa_envs.topology import Act, Chain, Role, Topology, View

SOLVER = Role(
    name="solver",
    duty="solve",
    instructions=(
        "You are the Problem Solver of a maths team. Work out the key steps briefly; do not run code. "
        "End with one line `Compute: EXPRESSION`, a single Python expression whose value is the answer."
    ),
)
CODER = Role(
    name="coder",
    duty="compute",
    tool="python",
    sees=(View("solver"),),
    instructions=(
        "You are the Code Executor of a maths team. Check the plan, then write one fenced ```python block that "
        "prints the answer. It is run for you; if it fails you may send one corrected block."
    ),
)
VERIFIER = Role(
    name="verifier",
    duty="answer",
    sees=(View("coder", turns="last"),),
    instructions=(
        "You are the Verifier of a maths team. Check the code and its output against the problem; if they are wrong, "
        "work it out yourself. Give exactly one final answer as \\boxed{ANSWER}."
    ),
)

CHAIN = Topology(
    name="chain",
    roles=(SOLVER, CODER, VERIFIER),
    flow=Chain((Act("solver"), Act("coder", turns=2, stop_when="code_ok"), Act("verifier"))),
    answer_role="verifier",
)
