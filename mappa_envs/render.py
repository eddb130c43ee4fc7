"""Transcripts as text for people."""

from __future__ import annotations

from mappa_envs.messages import tool_text
from mappa_envs.transcript import Transcript, Verdict

_RULE = "-" * 78


def render_transcript(transcript: Transcript, task_prompt: str, *, start: int = 0) -> str:
    """Return a transcript as text: the problem, each turn with its tool results and score, the outcome.

    Args:
        transcript: A finished or running episode.
        task_prompt: The problem statement.
        start: Number of turns to leave out because they were shown before; the header is left out with them. One
            more than the number of turns leaves out the outcome too.
    """
    lines: list[str] = []
    if start == 0:
        seed = "" if transcript.seed is None else f"  seed {transcript.seed}"
        lines += [
            f"{transcript.env_id}  {transcript.topology}  task {transcript.task_id}{seed}",
            _RULE,
            task_prompt.strip(),
        ]
    for turn in transcript.turns[start:]:
        lines += [_RULE, f"{turn.agent}  {_score(transcript.verdict(turn.index))}", turn.action.strip()]
        lines += [tool_text(turn.tools)] if turn.tools else []
        lines += [f"judge: {transcript.verdict(turn.index).reason}"]
    if transcript.outcome is not None and start <= len(transcript.turns):
        word = {True: "success", False: "failure", None: "undecided"}[transcript.outcome.success]
        lines += [_RULE, f"outcome: {word}, {transcript.outcome.reason}"]
    return "\n".join(lines)


def _score(verdict: Verdict) -> str:
    return f"score {verdict.score:.1f}/10" if verdict.score is not None else f"score {verdict.status}"
