"""The code that the scripted data team writes; `data_team.code_for` fills in the names of a task."""

from __future__ import annotations

from collections.abc import Mapping

ENGINEER = """
import numpy as np
import pandas as pd

ID, TARGET = {id!r}, {target!r}
train = pd.read_csv("train.csv", dtype={{ID: str, TARGET: {label_type}}}).set_index(ID)
test = pd.read_csv("test.csv", dtype={{ID: str}}).set_index(ID)
y = train.pop(TARGET)
made = {{}}
for name in train.columns:
    known, new = train[name], test[name]
    if not pd.api.types.is_numeric_dtype(known.dtype):
        days = [pd.to_datetime(part, format="%Y-%m-%d", errors="coerce") for part in (known, new)]
        if days[0].notna().mean() > 0.9:
            made[f"{{name}}_month"] = tuple(part.dt.month.fillna(0) for part in days)
            made[f"{{name}}_weekday"] = tuple(part.dt.weekday.fillna(0) for part in days)
            known, new = ((part - pd.Timestamp("1970-01-01")).dt.days for part in days)
        else:
            known, new = known.astype("object").fillna("missing"), new.astype("object").fillna("missing")
            counts = known.value_counts()
            if len(counts) <= 15:
                for i, level in enumerate(counts.index):
                    made[f"{{name}}_{{i}}"] = (known == level).astype(int), (new == level).astype(int)
            else:
                codes = {{level: i for i, level in enumerate(sorted(counts.index))}}
                made[name] = known.map(codes), new.map(codes).fillna(-1)
                made[f"{{name}}_count"] = known.map(counts), new.map(counts).fillna(0)
            continue
    middle = known.median() if known.notna().any() else 0.0
    if known.isna().any():
        made[f"{{name}}_missing"] = known.isna().astype(int), new.isna().astype(int)
    made[name] = known.astype(float).fillna(middle), new.astype(float).fillna(middle)
X_train = pd.DataFrame({{name: pair[0] for name, pair in made.items()}}, index=train.index)
X_test = pd.DataFrame({{name: pair[1] for name, pair in made.items()}}, index=test.index)
X_train.to_csv("X_train.csv")
X_test.to_csv("X_test.csv")
y.to_frame(TARGET).to_csv("y_train.csv")
print(X_train.shape, X_test.shape, y.shape)
"""

MODELER = """
import json
import joblib
import numpy as np
import pandas as pd
from sklearn import metrics
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ID, TARGET = {id!r}, {target!r}
X = pd.read_csv("X_train.csv", dtype={{ID: str}}).set_index(ID)
y = pd.read_csv("y_train.csv", dtype={{ID: str, TARGET: {label_type}}}).set_index(ID)[TARGET]
CLASSES = {classes!r}


def value(model, X, y):
    {value}


# Boosting grows a tree per class and round; bagged trees must fit into the file that is handed on.
rounds = 150 if len(CLASSES) < 4 else max(15, 400 // len(CLASSES))
boosting = dict(max_iter=rounds, learning_rate=max(0.06, 3 / rounds), max_leaf_nodes=15, min_samples_leaf=10)
leaf = max(2, len(X) // 2000)
if CLASSES:
    candidates = [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, C=0.3)),
        ExtraTreesClassifier(60, min_samples_leaf=leaf, random_state=0),
        HistGradientBoostingClassifier(random_state=0, **boosting),
    ]
    few = y.value_counts().min() < 3
    folds = KFold(3, shuffle=True, random_state=0) if few else StratifiedKFold(3, shuffle=True, random_state=0)
else:
    candidates = [
        make_pipeline(StandardScaler(), Ridge(alpha=3.0)),
        ExtraTreesRegressor(60, min_samples_leaf=leaf, random_state=0),
        HistGradientBoostingRegressor(random_state=0, loss={loss!r}, **boosting),
    ]
    if {log}:
        candidates = [TransformedTargetRegressor(m, func=np.log1p, inverse_func=np.expm1) for m in candidates]
    folds = KFold(3, shuffle=True, random_state=0)
some = np.random.default_rng(0).permutation(len(X))[:3000]
x_some, y_some = X.iloc[some], y.iloc[some]
scores = []
for model in candidates:
    parts = [
        value(model.fit(x_some.iloc[a], y_some.iloc[a]), x_some.iloc[b], y_some.iloc[b])
        for a, b in folds.split(x_some, y_some)
    ]
    scores.append(float(np.mean(parts)))
    print(type(model).__name__, round(scores[-1], 4))
best = int(np.{best}(scores))
rows = np.random.default_rng(0).permutation(len(X))[:10000]
model = candidates[best].fit(X.iloc[rows], y.iloc[rows])
joblib.dump(model, "model.joblib", compress=3)
with open("validation.json", "w") as file:
    json.dump({{"value": scores[best]}}, file)
print("chosen:", type(model).__name__)
"""

ANALYST = """
import joblib
import numpy as np
import pandas as pd

ID, TARGET, CLASSES = {id!r}, {target!r}, {classes!r}
X = pd.read_csv("X_test.csv", dtype={{ID: str}}).set_index(ID)
model = joblib.load("model.joblib")
COLUMNS = {columns!r}
{predict}
out = pd.DataFrame(predicted, index=X.index, columns=COLUMNS)
out.index.name = ID
out.to_csv("submission.csv")
print(out.shape)
print(out.head(3))
"""

CODE: Mapping[str, str] = {"engineer": ENGINEER, "modeler": MODELER, "analyst": ANALYST}

_SHARES = "shares = pd.DataFrame(model.predict_proba(X), columns=[str(c) for c in model.classes_])\n    "
_SHARES += (
    "shares = shares.reindex(columns=CLASSES, fill_value=0.0)\n    codes = [CLASSES.index(str(v)) for v in y]\n    "
)
_LABELS = "labels = [str(v) for v in model.predict(X)]\n    true = [str(v) for v in y]\n    "
VALUES: Mapping[str, str] = {
    "accuracy": _LABELS + "return metrics.accuracy_score(true, labels)",
    "f1": _LABELS + "return metrics.f1_score(true, labels, pos_label=CLASSES[1], zero_division=0)",
    "f1_macro": _LABELS + "return metrics.f1_score(true, labels, average='macro', zero_division=0)",
    "f1_weighted": _LABELS + "return metrics.f1_score(true, labels, average='weighted', zero_division=0)",
    "mcc": _LABELS + "return metrics.matthews_corrcoef(true, labels)",
    "qwk": _LABELS + "return metrics.cohen_kappa_score(true, labels, labels=CLASSES, weights='quadratic')",
    "roc_auc": _SHARES + "return metrics.roc_auc_score(codes, shares[CLASSES[1]])",
    "roc_auc_multiclass": _SHARES
    + "return np.mean([metrics.roc_auc_score([c == i for c in codes], shares[name]) "
    + "for i, name in enumerate(CLASSES) if i in codes])",
    "log_loss": _SHARES + "return metrics.log_loss(codes, shares.to_numpy(), labels=list(range(len(CLASSES))))",
    "gini": _SHARES + "return 2 * metrics.roc_auc_score(codes, shares[CLASSES[1]]) - 1",
    "gini_numbers": "p, t = model.predict(X), y.to_numpy()\n    "
    "g = lambda s: np.cumsum(t[np.argsort(-s, kind='stable')]).sum() / t.sum() - (len(t) + 1) / 2\n    "
    "return g(p) / g(t)",
    "rmse": "return metrics.root_mean_squared_error(y, model.predict(X))",
    "rmsle": "return metrics.root_mean_squared_log_error(y, np.clip(model.predict(X), 0, None))",
    "mae": "return metrics.mean_absolute_error(y, model.predict(X))",
    "medae": "return metrics.median_absolute_error(y, model.predict(X))",
    "mape": "return metrics.mean_absolute_percentage_error(y, model.predict(X))",
    "smape": "p = model.predict(X)\n    return np.mean(2 * np.abs(p - y) / np.maximum(np.abs(p) + np.abs(y), 1e-12))",
    "r2": "return metrics.r2_score(y, model.predict(X))",
    "map": _SHARES + "ranks = (-shares.to_numpy()).argsort(1).argsort(1)[np.arange(len(codes)), codes] + 1\n    "
    "return np.mean(np.where(ranks <= K, 1 / ranks, 0.0))",
}
"""The body of `value(model, X, y)`, by metric."""
