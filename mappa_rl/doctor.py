"""What `mappa doctor` prints: the sandbox, versions, devices, the model cache."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from mappa_envs.sandbox import doctor as sandbox_doctor

PACKAGES = (
    "mappa-gym", "gymnasium", "pettingzoo", "jupyter-client", "ipykernel", "sympy", "math-verify", "torch",
    "transformers", "peft", "accelerate",
)  # fmt: skip


def doctor_lines() -> Iterator[str]:
    """Yield the report line by line; the sandbox's facts first, since they take seconds to find."""
    yield from sandbox_doctor.report().lines()
    yield f"Python {platform.python_version()}, {os.cpu_count()} CPUs"
    yield "  ".join(f"{name} {_version(name)}" for name in PACKAGES)
    yield _devices()
    yield _model_cache()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(missing)"


def _devices() -> str:
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return f"CUDA: {', '.join(names)}; bfloat16: {torch.cuda.is_bf16_supported()}"
    if torch.backends.mps.is_available():
        return "device: MPS"
    return f"device: CPU only, {torch.get_num_threads()} threads"


def _model_cache() -> str:
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE)
    models = sorted(p.name.removeprefix("models--").replace("--", "/") for p in folder.glob("models--*"))
    return f"model cache {folder}: {', '.join(models) if models else 'empty'}"
