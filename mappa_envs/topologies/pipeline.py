"""The jobs of tasks on tables, and the paper's team: Engineer -> Modeler -> Analyst (MAPPA, section 4, DSBench)."""

from __future__ import annotations

from mappa_envs.checks import at_least
from mappa_envs.topologies.domain import Domain, Job
from mappa_envs.topology import Act, Chain, Role, Topology, View

ACCEPTED, DONE = "[ACCEPTED]", "[DONE]"
"""What a checker writes of good work, and what ends the turns of somebody who works alone."""

_RUN = (
    "Each fenced ```python block that you write is run in your own Python session, in the folder with the files "
    "(pandas and scikit-learn are there; there is no network). Print what you need to see: you are shown the output."
)
_END = "When your files are saved and checked, end your part with a short report without any code block."
_REPAIR = "If a file that you need is missing or broken, repair it."

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
        "takes a data frame with the features of X_test.csv; at most 64 MB\n"
        '- validation.json: {"value": NUMBER}, the metric of the problem on rows that the model was not fitted to\n'
        f"{_REPAIR} {_RUN} {_END}"
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
        f"sample_submission.csv. {_REPAIR} {_RUN} {_END}"
    ),
)


def pipeline(turns: int = 4) -> Topology:
    """Return the team of three.

    Args:
        turns: Most turns of each role; a turn without code ends its part earlier.

    Raises:
        ConfigError: If there are no turns.
    """
    at_least(1, turns=turns)
    roles = (ENGINEER, MODELER, ANALYST)
    return Topology(
        name="pipeline",
        roles=roles,
        flow=Chain(tuple(Act(role.name, turns=turns, stop_when="no_code") for role in roles)),
        answer_role="analyst",
    )


def tables(turns: int = 4) -> Domain:
    """Return the jobs of tasks on tables, for the built-in topologies.

    Args:
        turns: Most turns in a row of a job that codes.

    Raises:
        ConfigError: If there are no turns.
    """
    work = (
        "Predict the target of the rows of test.csv and save submission.csv in the form of sample_submission.csv. "
        f"Measure the metric of the problem on rows that the model was not fitted to. {_RUN}"
    )
    deliver = Job(duty="deliver", tool="python", turns=turns, stop_when="no_code", instructions=f"{work} {_END}")
    return Domain(
        name="tables",
        team=pipeline(turns),
        alone=Job(
            duty="deliver",
            tool="python",
            instructions=f"{work} When submission.csv is saved and checked, write {DONE}.",
        ),
        answered=DONE,
        propose=Job(
            duty="propose",
            instructions=(
                "Say in a few sentences which columns to use and how, which model to fit, and how to validate it. "
                "Nothing that you write is run: somebody else will do the work from the proposals."
            ),
        ),
        conclude=deliver,
        prove=deliver,
        check=Job(
            duty="check",
            instructions=(
                "Check the report and the list of files against the problem. If submission.csv is there and the work "
                f"is sound, write {ACCEPTED}. If not, say in one sentence what to correct, and do not write that word."
            ),
        ),
        accepted=ACCEPTED,
    )
