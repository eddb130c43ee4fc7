from __future__ import annotations

from pathlib import Path

import pytest

from mappa_envs.tasks.math.families import FAMILIES
from mappa_envs.tasks.math.gallery import gallery_markdown, main

COMMITTED = Path(__file__).parents[4] / "docs" / "gallery.md"


def test_the_committed_gallery_is_up_to_date() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == gallery_markdown(), "run python -m mappa_envs.tasks.math.gallery"


def test_the_gallery_shows_every_family_at_every_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep" / "gallery.md"
    assert main([str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert f"wrote {path}" in capsys.readouterr().out
    assert all(f"### `{name}`" in text for name in FAMILIES)
    assert sum(line.startswith(f"| {level} |") for line in text.splitlines() for level in range(1, 6)) == 5 * len(
        FAMILIES
    )
    assert main(["a", "b"]) == 2
