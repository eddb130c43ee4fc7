"""What comes out of the inspecting kernels, with its form checked: it is data from strangers."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mappa_envs.inspection import Evidence
from mappa_envs.judges.data_rules import inside_features, inside_model

MAX_REPORT_BYTES = 64 << 20
FEATURES_SECONDS = 60.0
MODEL_SECONDS = 60.0
"""Time to load the model and predict the test rows; a slower model counts as one that cannot predict."""


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Suspect(_Report):
    """A single feature that predicts the target suspiciously well."""

    strength: float
    predicted: list[float]


class FeatureReport(_Report):
    """What `inside_features` found; the notes are its own words, never text of an agent."""

    readable: str
    rows: str
    columns: str
    target: str
    classes: list[str]
    suspects: list[Suspect] = Field(max_length=inside_features.MAX_SUSPECTS)
    probe: list[float] | list[list[float]] | None
    raw: list[float] | list[list[float]] | None

    @property
    def sound(self) -> bool:
        """Whether the files fit together."""
        return self.probe is not None and self.raw is not None


class ModelReport(_Report):
    """What the model predicted. Loading it ran agent code, so all of it may be made up."""

    values: list[float] | list[str]
    classes: list[str]
    shares: list[list[float]] | None

    def fits(self, rows: int) -> bool:
        """Whether it is one prediction per row."""
        if len(self.values) != rows:
            return False
        if self.shares is None:
            return True
        return len(self.shares) == rows and all(len(row) == len(self.classes) for row in self.shares)


R = TypeVar("R", bound=_Report)


async def feature_report(
    evidence: Evidence, spec: Mapping[str, object], files: Mapping[str, bytes]
) -> FeatureReport | None:
    """Look at the feature files; None if that came to no end.

    No agent code runs where this is found out, so it can be relied on.
    """
    return await _run(evidence, inside_features, FeatureReport, spec, files, FEATURES_SECONDS)


async def model_report(
    evidence: Evidence, spec: Mapping[str, object], files: Mapping[str, bytes]
) -> ModelReport | None:
    """Have the model predict; None if it does not load or gives no predictions."""
    return await _run(evidence, inside_model, ModelReport, spec, files, MODEL_SECONDS)


async def _run(
    evidence: Evidence,
    module: ModuleType,
    form: type[R],
    spec: Mapping[str, object],
    files: Mapping[str, bytes],
    timeout: float,
) -> R | None:
    data = await evidence.run_apart(
        f"{inspect.getsource(module)}\n\nmain()\n",
        {**files, "spec.json": json.dumps(spec).encode()},
        "found.json",
        max_bytes=MAX_REPORT_BYTES,
        timeout=timeout,
    )
    if data is None:
        return None
    try:
        return form.model_validate_json(data)
    except ValidationError:
        return None
