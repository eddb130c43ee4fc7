"""What each duty of a data team is scored by. `docs/data_judge.md` shows these tables; a test compares them."""

from __future__ import annotations

from mappa_envs.judges.criteria import Rule

_TURN = "the turn has code"
_TRUTH = "ground truth is shown"
_BROKEN = "what the role needs was broken before it began"
_WHOLE = "what the role needs was usable before it began"

_RAN = Rule("ran", 1, "the code ran without error", _TURN)
_BLAMELESS = (
    Rule("tried", 4, "wrote code although what it needs was broken", _BROKEN),
    Rule("handled", 0.4, "reached its goal all the same", _BROKEN),
)

PREPARE = (
    _RAN,
    Rule("features.saved", 1.5, "saved X_train.csv, y_train.csv and X_test.csv"),
    Rule("features.readable", 1, "all features are finite numbers"),
    Rule("features.rows", 1, "they hold the rows of train.csv and test.csv"),
    Rule("features.columns", 0.5, "both tables have the same features"),
    Rule("features.target", 1, "y_train.csv is the target as it was given"),
    Rule("features.clean", 2.5, "no feature gives the target away"),
    Rule("features.useful", 1.5, "a plain model learns from them what it learns from the raw table", _TRUTH),
)
FIT = (
    _RAN,
    Rule("model.saved", 1, "saved model.joblib"),
    Rule("model.predicts", 2, "it loads in a fresh process and predicts every test row", "there are test rows to try"),
    Rule("model.varies", 0.5, "its predictions are not all the same"),
    Rule("model.validated", 1, "validation.json reports a value of the metric"),
    Rule("model.honest", 1, "the test rows do not belie that value", _TRUTH),
    Rule("model.beats", 1.5, "it is better than the trivial prediction", _TRUTH),
    Rule("model.half", 1, "it gets half-way to the reference model", _TRUTH),
    Rule("model.strong", 0.5, "it gets nearly as far as the reference model", _TRUTH),
    Rule("kept", 0.5, "left its colleagues' files usable", _WHOLE),
    *_BLAMELESS,
)
SUBMIT = (
    _RAN,
    Rule("submission.saved", 1, "saved submission.csv"),
    Rule("submission.valid", 2.5, "it is valid"),
    Rule("submission.own", 1.5, "it is not the sample submission", "it is not what the model predicts"),
    Rule("submission.varies", 0.5, "its predictions are not all the same", "it is not what the model predicts"),
    Rule("submission.follows", 1.5, "it holds the model's predictions, or better ones", "there is a model that works"),
    Rule("submission.beats", 1.5, "it is better than the trivial prediction", _TRUTH),
    Rule("kept", 0.5, "left its colleagues' files usable", _WHOLE),
    *_BLAMELESS,
)
DELIVER = (
    _RAN,
    Rule("submission.saved", 1, "saved submission.csv"),
    Rule("submission.valid", 2.5, "it is valid"),
    Rule("submission.own", 1.5, "it is not the sample submission"),
    Rule("submission.varies", 0.5, "its predictions are not all the same"),
    Rule("submission.beats", 1.5, "it is better than the trivial prediction", _TRUTH),
    Rule("submission.half", 1.5, "it gets half-way to the reference model", _TRUTH),
    Rule("submission.strong", 0.5, "it gets nearly as far as the reference model", _TRUTH),
)
PROPOSE = (
    Rule("columns", 4, "named columns of the table", "the problem lists columns"),
    Rule("model", 3, "named a kind of model"),
    Rule("validation", 3, "said how to validate it"),
)
CHECK = (
    Rule("spoke", 2, "said something"),
    Rule("judged", 8, "accepted a good submission, or sent back a bad one"),
)
ROUTE = (
    Rule("named", 2, "named a colleague"),
    Rule("timed", 8, "called the colleague whose files are the next that are missing or broken"),
)
RULES: dict[str, tuple[Rule, ...]] = {
    "prepare": PREPARE,
    "fit": FIT,
    "submit": SUBMIT,
    "deliver": DELIVER,
    "propose": PROPOSE,
    "check": CHECK,
    "route": ROUTE,
}
"""The criteria of each duty."""

BREAKING: dict[str, tuple[str, ...]] = {
    "fit": ("features.saved", "features.readable", "features.rows", "features.columns"),
}
BREAKING["submit"] = (*BREAKING["fit"], "model.saved", "model.predicts")
"""Checks without which a duty cannot be done: where one has failed before the role began, nothing that the role misses
is held against it."""

_SCORES = ("model.varies", "model.honest", "model.beats", "model.half", "model.strong")
SPOILING: dict[str, dict[str, tuple[str, ...]]] = {
    "fit": dict.fromkeys(("features.target", "features.clean", "features.useful"), _SCORES),
    "submit": {
        **dict.fromkeys(
            ("features.target", "features.clean", "features.useful"), ("submission.varies", "submission.beats")
        ),
        **dict.fromkeys(("model.varies", "model.beats", "model.half"), ("submission.varies", "submission.beats")),
    },
}
"""Checks that make a duty's result worse: where one has failed before the role began, these are not held against it."""


def tables() -> str:
    """Return the criteria of all duties as Markdown."""
    parts = []
    for duty, rules in RULES.items():
        lines = [f"### `{duty}`", "", "| points | fact | counts |", "|---|---|---|"]
        lines += [f"| {rule.points:g} | {rule.fact} | {rule.counts} |" for rule in rules]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
