"""Where a coach's requests go: an OpenAI-compatible endpoint over HTTP, or a recording of one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from envs_registry.extras import import_extra
from mappa_envs.judges.coach.cache import content_key
from mappa_envs.judges.coach.files import append_line, read_lines
from mappa_envs.judges.coach.settings import CoachSettings

MAX_BODY_BYTES = 4_000_000
"""A longer answer is broken: the longest replies are some ten thousand tokens."""

_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request."""

    status: int | None
    """HTTP status; None: no answer came."""
    text: str
    """The body; where no answer came, why."""
    retry_after: float | None = None
    """Seconds after which the endpoint wants to be asked again."""
    timed_out: bool = False
    """The request was sent, and may be paid for, but its answer did not come in time."""


class Endpoint(Protocol):
    """Takes request bodies, gives answers."""

    async def post(self, body: Mapping[str, Any]) -> Answer:
        """Send one request; whatever the network does becomes an `Answer`."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class HttpEndpoint:
    """An endpoint that is asked through the `openai` client, without the client's own retries.

    Args:
        settings: Where it is, the name of its key, the limit for one try.

    Raises:
        ConfigError: If the client is not installed or the key is not set.
    """

    def __init__(self, settings: CoachSettings) -> None:
        openai = import_extra("openai", "coach", "the coach")
        self._openai, self._timeout, self._record = openai, settings.timeout, settings.record
        self._key = settings.key()
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=self._key or "none",
            max_retries=0,
            timeout=settings.timeout,
            http_client=_bounded_client(openai)(timeout=settings.timeout),
        )

    async def post(self, body: Mapping[str, Any]) -> Answer:
        """Send one request and return the answer within the limit for one try."""
        answer = await self._post(body)
        if self._key is not None and self._key in answer.text:
            # Some endpoints repeat the key in their errors; reasons and recordings are for others to read.
            answer = Answer(answer.status, answer.text.replace(self._key, "[key]"), answer.retry_after)
        if self._record is not None:
            append_line(self._record, {"key": content_key(body), "body": body, **asdict(answer)})
        return answer

    async def _post(self, body: Mapping[str, Any]) -> Answer:
        try:
            # The client's own limit is per read: an answer that drips would never end.
            async with asyncio.timeout(self._timeout):
                # As text: what is not quite a completion is to be named, and fields of other vendors to be let through.
                return Answer(200, await self._client.post("/chat/completions", body=dict(body), cast_to=str))
        except self._openai.APIStatusError as error:
            response = error.response
            return Answer(response.status_code, response.text, _retry_after(response.headers))
        except (TimeoutError, self._openai.APITimeoutError):
            return Answer(None, f"no answer within {self._timeout:g} s", timed_out=True)
        except Exception as error:
            # A failure has many names here (client, HTTP library, TLS, decoding): none may end the run.
            cause = error.__cause__ or error
            return Answer(None, f"{type(cause).__name__}: {cause}"[:300])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class RecordedEndpoint:
    """Answers from a recording: equal requests get the recorded answers in order, and then the last one again.

    Args:
        path: What `record` wrote.

    Raises:
        JudgeError: If the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._answers: dict[str, list[Answer]] = {}
        for _, line in read_lines(path):
            answer = Answer(line["status"], line["text"], line["retry_after"], line["timed_out"])
            self._answers.setdefault(line["key"], []).append(answer)

    async def post(self, body: Mapping[str, Any]) -> Answer:
        """Return the next recorded answer to this request."""
        answers = self._answers.get(content_key(body))
        if not answers:
            return Answer(None, "this request is not in the recording")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class BodyTooLongError(Exception):
    """An answer went on after `MAX_BODY_BYTES`."""


def _bounded_client(openai: Any) -> Any:
    """Return the client's HTTP class with answers read here, up to a limit: the client itself would read for ever."""

    class Bounded(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            response = await super().send(request, **{**options, "stream": True})
            body = bytearray()
            try:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        raise BodyTooLongError(f"the answer has more than {MAX_BODY_BYTES} bytes")
            finally:
                await response.aclose()
            plain = {
                k: v for k, v in response.headers.items() if k.lower() not in ("content-encoding", "content-length")
            }
            return type(response)(response.status_code, headers=plain, content=bytes(body), request=request)

    return Bounded


def _retry_after(headers: Mapping[str, str]) -> float | None:
    with contextlib.suppress(ValueError):
        seconds = float(headers.get("retry-after", ""))
        return seconds if 0 <= seconds < float("inf") else None
    return None
