"""A data team without a model: plain code for each role that solves every table task."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mappa_envs.grading.tables import get_metric
from mappa_envs.tasks.tabular.base import TabularTask
from mappa_rl.errors import PolicyError
from mappa_rl.policy.base import PolicyRequest
from mappa_rl.policy.data_team_code import CODE, VALUES
from mappa_rl.policy.scripted import ScriptedPolicy

Edit = Callable[[str, str, TabularTask], str]
"""(role, code, task) -> the code that the role writes instead."""

_LOG = ("rmsle", "mape", "smape")
_ABSOLUTE = ("mae", "medae", "mape", "smape")
_OF_CLASSES = (
    "shares = pd.DataFrame(model.predict_proba(X), columns=[str(c) for c in model.classes_], index=X.index)\n"
    "shares = shares.reindex(columns=CLASSES, fill_value=0.0)\n"
)


def code_for(role: str, task: TabularTask) -> str:
    """Return the Python that a role of the scripted team writes for a task; only public facts of it are used.

    Args:
        role: `engineer`, `modeler` or `analyst`.
        task: Gives names, kind and metric.
    """
    metric = get_metric(task.metric)
    key = task.metric
    if metric.takes == "ranking":
        key = "map"
    elif task.metric == "gini" and task.kind == "regression":
        key = "gini_numbers"
    return (
        CODE[role]
        .format(
            id=task.id_column,
            target=task.target,
            classes=list(task.classes),
            columns=list(task.prediction_columns),
            label_type="str" if task.classes else "float",
            value=VALUES[key].replace("K,", f"{metric.ranks},"),
            best="argmax" if metric.greater_is_better else "argmin",
            loss="absolute_error" if task.metric in _ABSOLUTE else "squared_error",
            log=task.metric in _LOG,
            predict=_predict(task),
        )
        .strip()
    )


def _predict(task: TabularTask) -> str:
    metric = get_metric(task.metric)
    if task.kind == "regression":
        clip = ", 0, None" if metric.truth_is == "not negative" else ", None, None"
        return f"predicted = np.clip(model.predict(X){clip})"
    match metric.takes:
        case "labels":
            return "predicted = np.array([str(v) for v in model.predict(X)], dtype=object)"
        case "ranking":
            return (
                f"{_OF_CLASSES}order = (-shares.to_numpy()).argsort(1)[:, :{metric.ranks}]\n"
                "predicted = np.array([' '.join(CLASSES[i] for i in row) for row in order], dtype=object)"
            )
        case "probabilities" if len(task.prediction_columns) > 1:
            return f"{_OF_CLASSES}predicted = shares.to_numpy()"
        case _:
            return f"{_OF_CLASSES}predicted = shares[CLASSES[1]].to_numpy()"


def data_team(tasks: Iterable[TabularTask], edit: Edit | None = None) -> ScriptedPolicy:
    """Return a team that plays the given table tasks: one turn of code per role, then a report.

    Args:
        tasks: It knows a task by its prompt.
        edit: Changes the code of a role; None plays it as it is.
    """
    by_prompt = {task.prompt: task for task in tasks}

    def play(request: PolicyRequest) -> str:
        role = request.agent.rsplit("_", 1)[0]
        if len(request.messages) > 2:
            return "Done: my files are saved."
        text = request.messages[1]["content"]
        for prompt, task in by_prompt.items():
            if text.startswith(f"Problem:\n{prompt}"):
                code = code_for(role, task)
                return f"```python\n{edit(role, code, task) if edit is not None else code}\n```"
        raise PolicyError("the scripted team was not given this task", got=text[:80])

    return ScriptedPolicy(dict.fromkeys(CODE, play))
