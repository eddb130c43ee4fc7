from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mappa_rl.errors import PolicyError
from mappa_rl.policy.loading import TINY_FOLDER, load_base, pick_device, pick_dtype


def test_the_embedded_model_is_small_and_loads_like_any_other(tmp_path: Path) -> None:
    assert sum(f.stat().st_size for f in TINY_FOLDER.iterdir()) < 8_000_000
    plain = AutoModelForCausalLM.from_pretrained(TINY_FOLDER)
    plain.save_pretrained(tmp_path)
    load_base("tiny", device="cpu").tokenizer.save_pretrained(tmp_path)
    again = load_base(str(tmp_path), device="cpu")
    assert again.end_ids
    for one, two in zip(plain.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(
    ("model", "gguf", "message"),
    [
        ("/no/such/folder", None, "no such model folder"),
        ("./nothing.gguf", None, "no such GGUF file"),
        (str(TINY_FOLDER), "none.gguf", "no file 'none.gguf'"),
    ],
)
def test_a_missing_model_is_named(model: str, gguf: str | None, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        load_base(model, gguf_file=gguf, device="cpu")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be loaded"):
        load_base(str(tmp_path), device="cpu")


def test_devices_and_types() -> None:
    assert pick_device("cpu").type == "cpu"
    assert pick_dtype("auto", torch.device("cpu")) is torch.float32
    assert pick_dtype("auto", torch.device("cuda")) is torch.bfloat16
    assert pick_dtype("bfloat16", torch.device("cpu")) is torch.bfloat16
    with pytest.raises(PolicyError, match="cannot be used"):
        pick_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(PolicyError, match="cannot be used"):
            pick_device("cuda")
