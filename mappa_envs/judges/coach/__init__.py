"""The coach: a judge that is a language model."""

from __future__ import annotations

from mappa_envs.judges.coach.parser import Reading, parse_score
from mappa_envs.judges.coach.prompt import Prompt, load_prompt
from mappa_envs.judges.coach.render import render_request
from mappa_envs.judges.coach.settings import Limits

__all__ = ["Limits", "Prompt", "Reading", "load_prompt", "parse_score", "render_request"]
