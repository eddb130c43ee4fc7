"""`ReplayJudge`: gives recorded verdicts again, for exact reruns and for tests without a live coach."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from mappa_envs.errors import JudgeError
from mappa_envs.judges.base import Judge, JudgeRequest
from mappa_envs.transcript import Transcript, Verdict

_Key = tuple[str, str, str]


class ReplayJudge(Judge):
    """Looks verdicts up by what the agent saw and did.

    Args:
        transcripts: Recorded episodes; later ones win where two hold the same turn.
    """

    id = "replay-1"

    def __init__(self, transcripts: Iterable[Transcript]) -> None:
        self._verdicts: dict[_Key, Verdict] = {}
        for transcript in transcripts:
            for turn in transcript.turns:
                seen = json.dumps(turn.messages, sort_keys=True)
                self._verdicts[(seen, turn.agent, turn.action)] = transcript.verdict(turn.index)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a JSONL file of transcripts, as a training run writes it.

        Raises:
            JudgeError: If the file is missing or a line is not a transcript; names file and line.
        """
        if not path.is_file():
            raise JudgeError(f"no such transcript file: {path}", fix="point to a run's transcripts.jsonl")
        transcripts = []
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    transcripts.append(Transcript.from_json(json.loads(line)))
                except ValueError as error:
                    raise JudgeError(
                        f"{path}, line {number}: not a transcript",
                        expected="one JSON object per line",
                        got=str(error),
                    ) from error
        return cls(transcripts)

    async def score(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return the recorded verdict of each request; a turn that was never recorded is `failed`."""
        missing = Verdict.failed("this turn is not in the recording", self.id)
        return [
            self._verdicts.get((json.dumps(r.messages, sort_keys=True), r.agent, r.action), missing) for r in requests
        ]
