"""The paper's data team: Data Engineer -> Modeler -> Analyst on shared files (MAPPA, section 4, DSBench)."""

from __future__ import annotations

from mappa_envs.topology import Act, Chain, Role, Topology, View

_RUN = (
    "Each fenced ```python block that you write is run in your own Python session, in the folder with the files "
    "(pandas and scikit-learn are there; there is no network). Print what you need to see: you are shown the output."
)
_END = "When your files are saved and checked, end your part with a short report without any code block."

ENGINEER = Role(
    name="engineer",
    duty="prepare",
    tool="python",
    instructions=(
        "You are the Data Engineer of a data team. Turn train.csv and test.csv into features for a model. Save\n"
        "- X_train.csv and X_test.csv: the id column first, then the same numeric features in both, no missing values; "
        "one row per row of train.csv and of test.csv\n"
        "- y_train.csv: the id column and the target as it stands in train.csv, for the rows of X_train.csv in the "
        f"same order\nNever make a feature from the target. {_RUN} {_END}"
    ),
)
MODELER = Role(
    name="modeler",
    duty="fit",
    tool="python",
    sees=(View("engineer", turns="last"),),
    instructions=(
        "You are the Modeler of a data team. Fit a model to X_train.csv and y_train.csv (the first column is the id, "
        "not a feature). Save\n"
        "- model.joblib: with joblib, one fitted object of scikit-learn (a pipeline where needed) whose `predict` "
        "takes a data frame with the features of X_test.csv\n"
        '- validation.json: {"value": NUMBER}, the metric of the problem on rows that the model was not fitted to\n'
        f"If a file that you need is missing or broken, repair it. {_RUN} {_END}"
    ),
)
ANALYST = Role(
    name="analyst",
    duty="submit",
    tool="python",
    sees=(View("engineer", turns="last"), View("modeler", turns="last")),
    instructions=(
        "You are the Analyst of a data team. Predict the rows of X_test.csv (the first column is the id, not a "
        "feature) with the model in model.joblib, check the predictions, and save submission.csv in the form of "
        f"sample_submission.csv. If a file that you need is missing or broken, repair it. {_RUN} {_END}"
    ),
)


def pipeline(turns: int = 4) -> Topology:
    """Return the team of three, each with at most `turns` turns; a turn without code ends a role's part."""
    roles = (ENGINEER, MODELER, ANALYST)
    return Topology(
        name="pipeline",
        roles=roles,
        flow=Chain(tuple(Act(role.name, turns=turns, stop_when="no_code") for role in roles)),
        answer_role="analyst",
    )


PIPELINE = pipeline()
