"""Throughput of the coach against an endpoint that takes a fixed time, while environments keep stepping.

Run `python benchmarks/coach.py [--requests 200] [--seconds 0.1] [--concurrency 32]`. The ideal time is
`ceil(requests / concurrency) * seconds`. The endpoint is a process of its own; an environment with the rule judge is
stepped on the main thread meanwhile, on the same background loop as the coach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import time
from multiprocessing.connection import Connection

import mappa_envs
from mappa_envs import background
from mappa_envs.judges import JudgeRequest
from mappa_envs.judges.coach.judge import CoachJudge

ANSWER = json.dumps(
    {
        "choices": [{"message": {"content": '{"reason": "fine", "score": 7}'}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 30},
    }
).encode()


def serve(seconds: float, channel: Connection) -> None:
    """Answer every request after `seconds`."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
                await asyncio.sleep(seconds)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=512)
        channel.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def requests(number: int, salt: int) -> list[JudgeRequest]:
    """Return different requests of the usual length."""
    seen = {"role": "user", "content": "What is 6 * 7? " * 40}
    return [
        JudgeRequest(
            f"What is {salt} + {i}?", "sum", "solver_0", "solver", "solve", (seen,), "Compute: 1" * 60, (), (), None
        )
        for i in range(number)
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Throughput of the coach.")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    endpoint = multiprocessing.get_context("spawn").Process(target=serve, args=(options.seconds, theirs), daemon=True)
    endpoint.start()
    coach = CoachJudge(
        model="fixed",
        base_url=f"http://127.0.0.1:{ours.recv()}/v1",
        api_key_env=None,
        concurrency=options.concurrency,
    )
    background.run(coach.score(requests(options.concurrency, 0)))  # connections and imports
    env = mappa_envs.make("Mappa/MathChat-v0", topology="solo")
    ideal = math.ceil(options.requests / options.concurrency) * options.seconds
    print(
        f"{options.requests} requests, {options.seconds:g} s each, {options.concurrency} at once: ideal {ideal:.2f} s"
    )
    for stepping in (False, True):
        for run in range(1, options.repeat + 1):
            steps = 0
            start, cpu = time.perf_counter(), time.process_time()
            scoring = background.submit(coach.score(requests(options.requests, run + 100 * stepping)))
            while stepping and not scoring.done():
                env.reset(seed=steps)
                env.step("It is \\boxed{4}.")
                steps += 1
            verdicts = scoring.result()
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            ok = sum(verdict.status == "ok" for verdict in verdicts)
            print(
                f"{'stepping' if stepping else 'alone':9} {wall:.2f} s, {wall / ideal:.2f} x ideal, {ok} ok, "
                f"{1000 * cpu / options.requests:.1f} ms of CPU per request"
                + (f", {steps} episodes stepped meanwhile" if stepping else "")
            )
    env.close()
    endpoint.terminate()


if __name__ == "__main__":
    main()
