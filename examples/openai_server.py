"""A small OpenAI-compatible HTTP server over a local transformers model: a coach without an account.

    python examples/openai_server.py                                   # show: serve, ask a coach for one score, stop
    python examples/openai_server.py --port 8000                       # serve the embedded model until Ctrl-C
    python examples/openai_server.py --port 8000 --model SmolLM2-135M-Instruct.Q4_1.gguf

It knows `/v1/models` and `/v1/chat/completions` (messages, model, temperature, max_tokens, seed, and `response_format`
with a flat JSON schema of strings and whole numbers, which the model is held to token by token). One request is
answered at a time. For real work serve the model with vLLM, llama.cpp or Ollama.
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

from mappa_envs import background
from mappa_envs.judges import JudgeRequest
from mappa_envs.judges.coach.judge import CoachJudge
from mappa_rl.policy.loading import load_base

STRING_TOKENS = 48
"""Longest string that is generated for a property of a schema."""


class Model:
    """A language model that chats."""

    def __init__(self, name: str) -> None:
        self.base = load_base(name, device="cpu")
        self.name = name
        self._lock = threading.Lock()
        encode = self.base.tokenizer.encode
        self._digits = {encode(d, add_special_tokens=False)[-1]: d for d in "0123456789"}

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer one request of `/v1/chat/completions`."""
        prompt = self.base.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
        ids = self.base.tokenizer.encode(prompt, add_special_tokens=False)
        limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or 256)
        sampling = float(body.get("temperature", 1.0)), body.get("seed")
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        with self._lock, torch.random.fork_rng(devices=[]):
            torch.manual_seed(sampling[1] if sampling[1] is not None else torch.seed())
            text, made, ended = (
                (*self._fill(ids, schema, sampling[0]), True) if schema else self._say(ids, limit, sampling[0])
            )
        return {
            "object": "chat.completion",
            "model": self.name,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop" if ended else "length",
                }
            ],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": made, "total_tokens": len(ids) + made},
        }

    def _say(self, ids: list[int], limit: int, temperature: float) -> tuple[str, int, bool]:
        made = self._generate(ids, limit, temperature)
        ended = bool(made) and made[-1] in self.base.end_ids
        text = self.base.tokenizer.decode(made, skip_special_tokens=True)
        return text, len(made), ended

    def _fill(self, ids: list[int], schema: dict[str, Any], temperature: float) -> tuple[str, int]:
        """Write the schema's keys and let the model fill in the values."""
        text, made = "{", 0
        for i, (key, kind) in enumerate(schema["properties"].items()):
            text += f"{', ' if i else ''}{json.dumps(key)}: "
            if kind["type"] in ("number", "integer"):
                value, count = self._number(ids + self._encode(text), temperature)
            else:
                raw = self._generate(ids + self._encode(text + '"'), STRING_TOKENS, temperature)
                said = self.base.tokenizer.decode(raw, skip_special_tokens=True)
                value, count = json.dumps(said.split('"')[0]), len(raw)
            text, made = text + value, made + count
        return text + "}", made

    def _number(self, ids: list[int], temperature: float) -> tuple[str, int]:
        """Return a whole number from 0 to 10 in the model's own probabilities."""
        end = next(iter(self.base.end_ids))
        start = len(ids)

        def allowed(_: int, sequence: torch.Tensor) -> list[int]:
            said = "".join(self._digits[int(t)] for t in sequence[start:] if int(t) in self._digits)
            return list(self._digits) if not said else [self._only("0"), end] if said == "1" else [end]

        made = self._generate(ids, 3, temperature, prefix_allowed_tokens_fn=allowed)
        return "".join(self._digits[t] for t in made if t in self._digits), len(made)

    def _only(self, digit: str) -> int:
        return next(token for token, d in self._digits.items() if d == digit)

    def _encode(self, text: str) -> list[int]:
        return self.base.tokenizer.encode(text, add_special_tokens=False)

    def _generate(self, ids: list[int], limit: int, temperature: float, **options: Any) -> list[int]:
        how = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        inputs = torch.tensor([ids])
        out = self.base.model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=limit,
            eos_token_id=sorted(self.base.end_ids),
            pad_token_id=self.base.pad_id,
            **how,
            **options,
        )
        return [int(t) for t in out[0, len(ids) :]]


def make_handler(model: Model) -> type[BaseHTTPRequestHandler]:
    """Return the handler of a server for one model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self.reply(200, {"object": "list", "data": [{"id": model.name, "object": "model"}]})
            else:
                self.reply(404, {"error": {"message": f"no such path: {self.path}"}})

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path != "/v1/chat/completions":
                return self.reply(404, {"error": {"message": f"no such path: {self.path}"}})
            try:
                body = json.loads(data)
                answer = model.chat(body)
            except (ValueError, KeyError, TypeError) as error:
                return self.reply(400, {"error": {"message": f"{type(error).__name__}: {error}"}})
            except Exception as error:
                return self.reply(500, {"error": {"message": f"{type(error).__name__}: {error}"}})
            return self.reply(200, answer)

        def reply(self, status: int, data: dict[str, Any]) -> None:
            text = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


def show(url: str) -> None:
    """Ask a coach at the server for the score of one action."""
    coach = CoachJudge(model="local", base_url=url, api_key_env=None)
    request = JudgeRequest(
        task_prompt="What is 6 * 7?",
        task_kind="arithmetic",
        agent="solver_0",
        role="solver",
        duty="solve",
        messages=({"role": "user", "content": "What is 6 * 7?"},),
        action="Six times seven is 42.\nCompute: 6 * 7",
        tools=(),
        earlier=(),
        truth=None,
    )
    verdict = background.run(coach.score([request]))[0]
    print(f"{verdict.judge}: {verdict.status}, score {verdict.score}, cost {verdict.cost}")


def main() -> None:
    """Serve, or show."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server over a local model.")
    parser.add_argument("--model", default="tiny", help="tiny, a folder, a .gguf file or a hub id")
    parser.add_argument("--port", type=int, help="0: any free port; without this option: show and stop")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port or 0), make_handler(Model(options.model)))
    url = f"http://127.0.0.1:{server.server_port}/v1"
    print(url, flush=True)
    if options.port is None:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        show(url)
        server.shutdown()
        server.server_close()
        return
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
