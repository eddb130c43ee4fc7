"""Faults that one role of the scripted data team commits, to see whom a judge blames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mappa_envs.tasks.tabular.base import TabularTask
from mappa_rl.policy.data_team import data_team
from mappa_rl.policy.scripted import ScriptedPolicy


@dataclass(frozen=True, slots=True)
class Sabotage:
    """A fault."""

    role: str
    """Who commits it."""
    code: str
    """Python that the role runs after its honest code, in the same session."""


_LEAK = (
    "codes = pd.Series(pd.factorize(y, sort=True)[0] if {classes!r} else y.to_numpy(), index=y.index).astype(float)\n"
)
_NOISE = "noise = np.random.default_rng(0).normal(scale=0.15 * codes.std(), size=len(codes))\n"

SABOTAGES: Mapping[str, Sabotage] = {
    "no test features": Sabotage("engineer", "import os\nos.remove('X_test.csv')"),
    "target leak": Sabotage(
        "engineer",
        _LEAK
        + "X_train.assign(hint=codes).to_csv('X_train.csv')\nX_test.assign(hint=codes.mean()).to_csv('X_test.csv')",
    ),
    "noisy leak": Sabotage(
        "engineer",
        f"{_LEAK}{_NOISE}X_train.assign(hint=codes + noise).to_csv('X_train.csv')\n"
        "X_test.assign(hint=codes.mean()).to_csv('X_test.csv')",
    ),
    "test rows dropped": Sabotage("engineer", "X_test.iloc[5:].to_csv('X_test.csv')"),
    "training rows dropped": Sabotage("engineer", "X_train.iloc[::2].to_csv('X_train.csv')"),
    "text feature": Sabotage(
        "engineer",
        "X_train.assign(note='a').to_csv('X_train.csv')\nX_test.assign(note='b').to_csv('X_test.csv')",
    ),
    "missing values": Sabotage("engineer", "X_train.iloc[0, 0] = np.nan\nX_train.to_csv('X_train.csv')"),
    "other test columns": Sabotage("engineer", "X_test.iloc[:, 1:].to_csv('X_test.csv')"),
    "target shuffled": Sabotage(
        "engineer",
        "pd.Series(np.random.default_rng(0).permutation(y), index=y.index, name=TARGET).to_csv('y_train.csv')",
    ),
    "noise for features": Sabotage(
        "engineer",
        "for table, name in ((X_train, 'X_train.csv'), (X_test, 'X_test.csv')):\n"
        "    noise = np.random.default_rng(len(table)).normal(size=(len(table), 3))\n"
        "    pd.DataFrame(noise, index=table.index, columns=['a', 'b', 'c']).to_csv(name)",
    ),
    "unfitted model": Sabotage("modeler", "from sklearn.base import clone\njoblib.dump(clone(model), 'model.joblib')"),
    "other columns": Sabotage(
        "modeler", "joblib.dump(model.fit(X.assign(extra=1.0).iloc[rows], y.iloc[rows]), 'model.joblib')"
    ),
    "no model": Sabotage("modeler", "import os\nos.remove('model.joblib')"),
    "no validation": Sabotage("modeler", "import os\nos.remove('validation.json')"),
    "constant model": Sabotage(
        "modeler",
        "from sklearn.dummy import DummyClassifier, DummyRegressor\n"
        "joblib.dump((DummyClassifier() if CLASSES else DummyRegressor()).fit(X, y), 'model.joblib')",
    ),
    "no estimator": Sabotage("modeler", "joblib.dump({{'score': 10}}, 'model.joblib')"),
    "sample handed in": Sabotage("analyst", "import shutil\nshutil.copy('sample_submission.csv', 'submission.csv')"),
    "ids shuffled": Sabotage(
        "analyst",
        "out.set_axis(np.random.default_rng(0).permutation(out.index)).rename_axis(ID).to_csv('submission.csv')",
    ),
    "constant predictions": Sabotage("analyst", "out.iloc[:] = out.iloc[0].to_numpy()\nout.to_csv('submission.csv')"),
    "rows left out": Sabotage("analyst", "out.iloc[5:].to_csv('submission.csv')"),
    "wrong columns": Sabotage("analyst", "out.add_suffix('_predicted').to_csv('submission.csv')"),
    "nothing handed in": Sabotage("analyst", "import os\nos.remove('submission.csv')"),
}
"""Faults by name."""


def sabotaged(tasks: Iterable[TabularTask], name: str | None, *, quick: bool = False) -> ScriptedPolicy:
    """Return the scripted team with one fault.

    Args:
        tasks: The tasks that it plays.
        name: A key of `SABOTAGES`; None for an honest team.
        quick: Try only one kind of model, a linear one.
    """

    def edit(role: str, code: str, task: TabularTask) -> str:
        if quick:
            code = code.replace("scores = []", "candidates = candidates[:1]\nscores = []")
        if name is not None and SABOTAGES[name].role == role:
            code += "\n" + SABOTAGES[name].code.format(classes=list(task.classes))
        return code

    return data_team(tasks, edit)
