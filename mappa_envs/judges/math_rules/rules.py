"""What each duty of a maths team is scored by. `docs/math_judge.md` shows these tables; a test compares them."""

from __future__ import annotations

from mappa_envs.judges.criteria import Rule

SOLVE = (
    Rule("line", 1, "gave a Compute line"),
    Rule("evaluates", 1, "its expression evaluates"),
    Rule("worked", 1, "its value is worked out, not typed in"),
    Rule("numbers", 1, "it uses the problem's numbers", "the problem has numbers"),
    Rule("equations", 0.5, "the equations it states hold", "there is a Compute line and at least one can be checked"),
    Rule("stated", 0.5, "the answer it states is its value", "it states a number, and its expression evaluates"),
    Rule("right", 5, "its value is the answer", "ground truth is shown"),
)
COMPUTE = (
    Rule("block", 0.5, "wrote a python block"),
    Rule("valid", 0.5, "the code is valid Python"),
    Rule("ran", 1, "the code ran without error"),
    Rule("printed", 1, "its last line of output is one value"),
    Rule("computed", 1, "the value is computed, not typed in"),
    Rule("follows", 1, "the value follows the plan", "a plan has a value, unless this value is right"),
    Rule("right", 5, "the value is the answer", "ground truth is shown"),
)
ANSWER = (
    Rule("boxed", 1, "gave a boxed answer"),
    Rule("single", 1, "gave exactly one"),
    Rule("short", 0.5, "kept it short"),
    Rule("own", 0.5, "did not only copy a text that it saw", "there are earlier turns"),
    Rule("kept", 2, "kept the result that it was given", "there is such a result and it is not known to be wrong"),
    Rule("right", 5, "the answer is right", "ground truth is shown"),
)
CHECK = (
    Rule("told", 2, "said in own words what is wrong"),
    Rule("pointed", 3, "spoke of a number of the work or the problem", "there are numbers"),
    Rule("right", 5, "there was no right result to accept", "no result was there, or ground truth is shown"),
)
ROUTE = (
    Rule("named", 2, "named a colleague"),
    Rule("fresh", 3, "did not call the same colleague again without need"),
    Rule("right", 5, "called for the answer when there was a result, and not before", "no doubt about the result"),
)
RULES: dict[str, tuple[Rule, ...]] = {
    "solve": SOLVE,
    "compute": COMPUTE,
    "answer": ANSWER,
    "check": CHECK,
    "route": ROUTE,
}
"""The criteria of each duty. A turn of `check` that boxes an answer is one of `answer`; a turn of `work` is one of
`compute` when it has code, else one of `answer`."""


def tables() -> str:
    """Return the criteria of all duties as Markdown."""
    parts = []
    for duty, rules in RULES.items():
        lines = [f"### `{duty}`", "", "| points | fact | counts |", "|---|---|---|"]
        lines += [f"| {rule.points:g} | {rule.fact} | {rule.counts} |" for rule in rules]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
