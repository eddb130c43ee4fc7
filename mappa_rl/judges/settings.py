"""Settings of the local coach."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from mappa_rl.config.settings import Config


class LocalCoachConfig(Config):
    """Which model scores, and how."""

    model: str = "tiny"
    """As `policy.model`: a local folder, a `.gguf` file, a hub id, or `tiny`, which knows nothing of coaching."""
    gguf_file: str | None = None
    """Name of the GGUF file in that folder or hub repository."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """As `policy.dtype`."""
    device: str = "auto"
    """As `policy.device`."""
    attention: str | None = None
    """As `policy.attention`."""
    mode: Literal["digits", "generate"] = "digits"
    """`digits`: the expected score, from the probabilities of 0 to 10 in one forward pass, without reasons;
    `generate`: the model writes its reasons and then a score."""
    prompt: str = "v1"
    """A built-in version of the coach's prompt, or a folder."""
    template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Variables of the chat template, e.g. `{"enable_thinking": false}`, which `digits` needs of thinking models."""
    max_prompt_tokens: int = Field(default=8192, ge=64)
    """Longer prompts, and those that the model's context has no room for, are cut in the middle; the reason says so."""
    max_new_tokens: int = Field(default=512, ge=8)
    """Longest reply of `generate`; a reply that is cut off is no score."""
    min_mass: float = Field(default=0.5, ge=0, lt=1)
    """`digits` fails where the model gives all scores together no more than this probability."""
    batch_size: int = Field(default=1, ge=1)
    """Requests per forward pass. With 1, equal requests get equal scores to the last bit, whatever else is asked at
    the time; larger batches are faster on a GPU, and the last digits depend on which requests met."""
    folder: Path | None = None
    """Where replies are kept and used again for equal requests; several processes may share it."""
