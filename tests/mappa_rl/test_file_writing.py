from __future__ import annotations

from pathlib import Path

import pytest

from mappa_rl.files import write_folder, write_text


def test_a_text_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "first")
    write_text(path, "zweites ü")
    assert path.read_text(encoding="utf-8") == "zweites ü"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_a_folder_that_was_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"

    def fill(place: Path) -> None:
        (place / "sub").mkdir()
        (place / "sub" / "new.txt").write_text("new")

    def break_off(place: Path) -> None:
        (place / "half.txt").write_text("half")
        raise KeyboardInterrupt

    write_folder(folder, lambda place: (place / "old.txt").write_text("old") and None)
    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, break_off)
    assert [p.name for p in folder.iterdir()] == ["old.txt"]
    write_folder(folder, fill)
    assert [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*"))] == [
        "folder",
        "folder/sub",
        "folder/sub/new.txt",
    ]
