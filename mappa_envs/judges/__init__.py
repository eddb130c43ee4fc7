"""Judges, and finding them by name or config."""

from __future__ import annotations

from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.judges.lookup import JudgeConfig, get_judge, judge_names
from mappa_envs.judges.outcome import OutcomeJudge
from mappa_envs.judges.replay import ReplayJudge

__all__ = ["Judge", "JudgeConfig", "JudgeRequest", "OutcomeJudge", "ReplayJudge", "get_judge", "judge_names"]
