"""The rule judge for maths teams: deterministic, free, and from observable facts only."""

from __future__ import annotations

from mappa_envs.judges.criteria import Criterion, verdict_from
from mappa_envs.judges.math_rules.judge import MathRules
from mappa_envs.judges.math_rules.plan import plan_expression, plan_value
from mappa_envs.judges.math_rules.values import last_output

__all__ = ["Criterion", "MathRules", "last_output", "plan_expression", "plan_value", "verdict_from"]
