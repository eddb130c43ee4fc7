"""The rule judge for data teams: deterministic, free, from the artefacts that a team leaves."""

from __future__ import annotations

from mappa_envs.judges.data_rules.inspector import DataInspector
from mappa_envs.judges.data_rules.judge import DataRules

__all__ = ["DataInspector", "DataRules"]
