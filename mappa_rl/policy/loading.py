"""Loading a base model: the embedded one, a local folder, a GGUF file or a hub id, all through transformers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as hf_logging

from mappa_rl.errors import PolicyError
from mappa_rl.policy.logprobs import final_logits

TINY = "tiny"
TINY_FOLDER = Path(__file__).parent / "tiny" / "weights"

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class Base:
    """A loaded base model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    end_ids: frozenset[int]
    """Ids that end an assistant turn."""
    pad_id: int


def pick_device(device: str) -> torch.device:
    """Return the device of a config value: `auto` takes CUDA, then Apple's MPS, then the CPU.

    Raises:
        PolicyError: If the device is unknown or not there.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise PolicyError(
            f"device {device!r} cannot be used",
            expected="auto, cpu, cuda, cuda:N or mps",
            got=str(error).split("\n")[0],
            fix="set policy.device=auto",
        ) from error
    return chosen


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return the torch type of a config value: `auto` is bfloat16 on CUDA and float32 elsewhere."""
    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return _DTYPES[dtype]


def load_base(
    model: str,
    *,
    gguf_file: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    attention: str | None = None,
    gradient_checkpointing: bool = False,
    move: bool = True,
) -> Base:
    """Load a base model and its tokenizer.

    Args:
        model: `tiny`, a local folder, the path of a `.gguf` file, or a hub id.
        gguf_file: Name of the GGUF file inside `model`, for folders and hub ids.
        dtype: `auto`, `float32`, `bfloat16` or `float16`.
        device: `auto` or a torch device.
        attention: transformers' `attn_implementation`, or None for its choice.
        gradient_checkpointing: Compute activations again in the backward pass: less memory, more time.
        move: Put the weights on the device; else they stay in main memory, for `Sharding.split` to move.

    Raises:
        PolicyError: If the folder or file is missing, transformers cannot load it, or its logits are not those of its
            decoder and output layer.
    """
    source, gguf = _source(model, gguf_file)
    where = pick_device(device)
    extra: dict[str, Any] = {"gguf_file": gguf} if gguf else {}
    try:
        with _progress_bars(sys.stderr.isatty()):
            tokenizer = AutoTokenizer.from_pretrained(source, **extra)
            loaded = AutoModelForCausalLM.from_pretrained(
                source, dtype=pick_dtype(dtype, where), attn_implementation=attention, **extra
            )
    except ImportError as error:
        raise PolicyError(
            f"model {model!r} needs a package that is not installed",
            got=str(error),
            fix='pip install "mappa-gym[gguf]" for GGUF files',
        ) from error
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"model {model!r} cannot be loaded",
            expected="'tiny', a local folder, a .gguf file or a hub id",
            got=str(error).strip().split("\n")[0],
            fix="check the name; offline, give a local folder",
        ) from error
    loaded.to(where if move else "cpu").eval()
    _check_head(loaded, model)
    if gradient_checkpointing:
        # transformers renamed the method within its version 5.
        enable = getattr(loaded, "activation_checkpointing_enable", None) or loaded.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    end_ids = _end_ids(loaded, tokenizer)
    pad = tokenizer.pad_token_id
    return Base(loaded, tokenizer, model, end_ids, pad if pad is not None else min(end_ids))


@contextlib.contextmanager
def _progress_bars(shown: bool) -> Iterator[None]:
    before = hf_logging.is_progress_bar_enabled()
    if not shown:
        hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if before:
            hf_logging.enable_progress_bar()


def _source(model: str, gguf_file: str | None) -> tuple[str, str | None]:
    if model == TINY:
        return str(TINY_FOLDER), None
    path = Path(model).expanduser()
    if path.suffix == ".gguf" and gguf_file is None:
        if not path.is_file():
            raise PolicyError(f"no such GGUF file: {model}", fix="check policy.model")
        return str(path.parent), path.name
    looks_local = model.startswith((".", "/", "~")) or model.count("/") > 1
    if looks_local and not path.is_dir():
        raise PolicyError(
            f"no such model folder: {model}",
            expected="a folder with config.json and weights",
            fix="check policy.model",
        )
    if path.is_dir() and gguf_file is not None and not (path / gguf_file).is_file():
        raise PolicyError(f"no file {gguf_file!r} in {model}", fix="check policy.gguf_file")
    return (str(path) if path.is_dir() else model), gguf_file


@torch.no_grad()
def _check_head(model: Any, name: str) -> None:
    """Refuse a model that does more between its decoder and its logits than training would do."""
    ids = torch.arange(1, 5, device=model.device)[None]
    states = model.get_decoder()(input_ids=ids, use_cache=False)[0]
    expected, got = model(input_ids=ids, use_cache=False).logits.float(), final_logits(model, states)
    if not torch.allclose(got, expected, rtol=1e-2, atol=1e-2 * float(expected.abs().max())):
        raise PolicyError(
            f"model {name!r} makes its logits in a way that training does not know",
            expected="the output layer on the decoder's states, with logit_scale, logits_scaling or a soft cap",
            got=f"logits that differ by {float((got - expected).abs().max()):.3g}",
            fix="use another model",
        )


def _end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    declared = getattr(model.generation_config, "eos_token_id", None)
    ids = set(declared if isinstance(declared, list) else [declared])
    ids.add(tokenizer.eos_token_id)
    # Chat models often end a turn with a token that their base model's config does not name.
    for token in ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>"):
        index = tokenizer.convert_tokens_to_ids(token)
        if index is not None and index != tokenizer.unk_token_id:
            ids.add(index)
    ids.discard(None)
    if not ids:
        raise PolicyError("the tokenizer names no end-of-turn token", fix="set tokenizer.eos_token")
    return frozenset(int(i) for i in ids)
