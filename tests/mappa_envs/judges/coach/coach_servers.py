"""Real HTTP servers for the coach's tests: scripted endpoints, and a proxy that does harm."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

Mode = Literal["whole", "stall", "cut", "drip", "huge", "hang_up"]


@dataclass
class Http:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    mode: Mode = "whole"
    """cut: half of the body, then the end; drip: a byte now and then; huge: for ever; hang_up: no answer at all."""


Handler = Callable[[dict[str, Any]], Http | Awaitable[Http]]


class HttpServer:
    """Serves POST requests with a handler, on a loop and a thread of its own."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.seen: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.most_at_once = 0
        self._now = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> HttpServer:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(h.split(":")[1]) for h in head.split("\r\n") if h.lower().startswith("content-length"))
        body = json.loads(await reader.readexactly(length))
        self.seen.append(body)
        self.headers.append(head)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            made = self._handler(body)
            return await self._send(writer, made if isinstance(made, Http) else await made)
        finally:
            self._now -= 1

    async def _send(self, writer: asyncio.StreamWriter, http: Http) -> bool:
        if http.mode == "hang_up":
            return False
        if http.mode == "stall":
            await asyncio.sleep(3600)
        length = "" if http.mode == "huge" else f"Content-Length: {len(http.body)}\r\n"
        extra = "".join(f"{name}: {value}\r\n" for name, value in http.headers.items())
        head = f"HTTP/1.1 {http.status} X\r\nContent-Type: application/json\r\n{length}{extra}\r\n"
        writer.write(head.encode())
        if http.mode == "cut":
            writer.write(http.body[: len(http.body) // 2])
            await writer.drain()
            return False
        if http.mode == "drip":
            for byte in http.body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.5)
        while http.mode == "huge":
            writer.write(b" " * 65536)
            await writer.drain()
        writer.write(http.body)
        await writer.drain()
        return True


def completion(content: Any, *, finish: str | None = "stop", usage: tuple[int, int] | None = (100, 10)) -> Http:
    """A chat completion as OpenAI's endpoint words it."""
    data: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}],
    }
    if usage is not None:
        data["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Http(json.dumps(data).encode())


def error(status: int, message: str, **fields: Any) -> Http:
    return Http(json.dumps({"error": {"message": message, **fields}}).encode(), status)


async def forward(url: str, body: dict[str, Any]) -> Http:
    """Ask the server behind a proxy."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    data = json.dumps(body).encode()
    writer.write(
        f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.hostname}\r\nConnection: close\r\n"
        f"Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return Http(answer, int(head.split()[1]))
