"""Make the embedded base model: own tokenizer, own random initialisation, own supervised warm start.

    python -m mappa_rl.policy.tiny.build --out FOLDER [--seed 0] [--steps 1500]

The same seed on the same machine gives the same weights. Only training-split problems are used, so the evaluation
split stays unseen.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mappa_envs.tasks.math.families import STARTER_FAMILIES
from mappa_envs.tasks.math.procedural import ProceduralSource
from mappa_rl.policy.chat import encode_chat
from mappa_rl.policy.loading import TINY_FOLDER
from mappa_rl.policy.tiny.demos import Demo, Shares, demonstrate

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
LEVELS = (1, 2)


def make_tokenizer(texts: Sequence[str], vocabulary: int = 640) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer in which every digit is a token of its own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return a freshly initialised Llama of about 0.9 million parameters."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=352,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def make_demos(count: int, shares: Shares, seed: int) -> list[Demo]:
    """Play `count` episodes on training problems of the starter families."""
    source = ProceduralSource("train", seed=seed, families=STARTER_FAMILIES, levels=LEVELS)
    rng = np.random.default_rng(seed)
    low, high = shares.plan_right
    spread = dict(zip(STARTER_FAMILIES, np.linspace(low, high, len(STARTER_FAMILIES)), strict=True))
    return [
        demo
        for i in range(count)
        for task in [source.task(i)]
        for demo in demonstrate(task, float(spread[task.kind]), shares, rng)
    ]


def batches(
    examples: Sequence[tuple[list[int], list[int]]], size: int, rng: np.random.Generator
) -> Iterator[list[tuple[list[int], list[int]]]]:
    """Yield endless batches of examples of similar length."""
    while True:
        order = rng.permutation(len(examples))
        for start in range(0, len(order) - size * 16 + 1, size * 16):
            pool = sorted((examples[i] for i in order[start : start + size * 16]), key=lambda e: len(e[0]) + len(e[1]))
            for at in rng.permutation(16):
                yield pool[at * size : (at + 1) * size]


def batch_loss(model: LlamaForCausalLM, batch: Sequence[tuple[list[int], list[int]]], prompt_weight: float) -> Any:
    """Return the token cross-entropy; prompt tokens count `prompt_weight`, so that copying is learnt from them too."""
    longest = max(len(p) + len(r) for p, r in batch)
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    weights = torch.zeros((len(batch), longest))
    for row, (prompt, response) in enumerate(batch):
        end = len(prompt) + len(response)
        ids[row, :end] = torch.tensor(prompt + response)
        weights[row, : len(prompt)] = prompt_weight
        weights[row, len(prompt) : end] = 1.0
    logits = model(input_ids=ids).logits
    losses = functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    flat = weights[:, 1:].flatten()
    return (losses * flat).sum() / flat.sum()


def train(
    model: LlamaForCausalLM,
    examples: Sequence[tuple[list[int], list[int]]],
    *,
    steps: int,
    batch: int,
    lr: float,
    seed: int,
) -> None:
    """Warm-start `model` on the examples with AdamW and a cosine schedule."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.05)
    warmup = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min(1.0, (s + 1) / warmup) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, s / steps)))),
    )
    stream = batches(examples, batch, np.random.default_rng(seed))
    started = time.monotonic()
    model.train()
    for step in range(1, steps + 1):
        loss = batch_loss(model, next(stream), prompt_weight=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps:
            print(f"step {step}/{steps}  loss {loss.item():.4f}  {time.monotonic() - started:.0f} s", flush=True)
    model.eval()


def build(
    out: Path, *, seed: int = 0, steps: int = 1500, episodes: int = 12000, batch: int = 64, lr: float = 3e-3
) -> None:
    """Make the model and write it to `out` in transformers' format, with a note on how it was made."""
    torch.manual_seed(seed)
    shares = Shares()
    demos = make_demos(episodes, shares, seed)
    tokenizer = make_tokenizer(
        [m["content"] for d in demos[:8000] for m in d.messages] + [d.response for d in demos[:8000]]
    )
    end = [tokenizer.eos_token_id]
    examples = [
        (
            encode_chat(tokenizer, d.messages),
            tokenizer(d.response, add_special_tokens=False)["input_ids"] + end,
        )
        for d in demos
    ]
    print(f"{len(examples)} demonstrations, mean length {np.mean([len(p) + len(r) for p, r in examples]):.0f} tokens")
    model = make_model(tokenizer)
    train(model, examples, steps=steps, batch=batch, lr=lr, seed=seed)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    note = {
        "seed": seed,
        "steps": steps,
        "episodes": episodes,
        "batch": batch,
        "lr": lr,
        "levels": LEVELS,
        "families": STARTER_FAMILIES,
        "plan_right": shares.plan_right,
        "import_math": shares.import_math,
        "fenced": shares.fenced,
        "repaired": shares.repaired,
        "boxed": shares.boxed,
    }
    (out / "how_it_was_made.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Make the embedded base model.")
    parser.add_argument("--out", type=Path, default=TINY_FOLDER)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--episodes", type=int, default=12000)
    args = parser.parse_args()
    build(args.out, seed=args.seed, steps=args.steps, episodes=args.episodes)


if __name__ == "__main__":
    main()
