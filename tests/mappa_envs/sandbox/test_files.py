"""The host's access to files that agents wrote."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest
from conftest import Box
from hypothesis import given, settings
from hypothesis import strategies as st

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import FileInfo, SandboxConfig, UnsafeFileError, files
from mappa_envs.sandbox.workspace import HostWorkspace


@pytest.fixture
def space(tmp_path: Path) -> HostWorkspace:
    folder = tmp_path / "space"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    return HostWorkspace.at(folder, SandboxConfig(disk_mb=1))


def _root(space: HostWorkspace) -> Path:
    assert space.path is not None
    return space.path


def test_files_are_written_listed_and_read(space: HostWorkspace) -> None:
    background.run(space.write("data/train.csv", b"a,b\n1,2\n"))
    background.run(space.write("data/train.csv", b"a,b\n3,4\n"))
    background.run(space.write("notes.txt", b""))
    assert background.run(space.files()) == [FileInfo("data/train.csv", 8), FileInfo("notes.txt", 0)]
    assert background.run(space.read("data/train.csv", 8)) == b"a,b\n3,4\n"
    assert background.run(space.read("./data//train.csv", 8)) == b"a,b\n3,4\n"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "", ".", "a\0b", "/".join("a" * 40)]
)
def test_paths_that_lead_outside_are_refused(space: HostWorkspace, path: str) -> None:
    with pytest.raises(UnsafeFileError, match="is refused"):
        background.run(space.read(path, 100))
    with pytest.raises(UnsafeFileError, match="is refused"):
        background.run(space.write(path, b"x"))


def test_links_are_never_followed(space: HostWorkspace) -> None:
    root = _root(space)
    secret = root.parent / "secret.txt"
    (root / "link").symlink_to(secret)
    (root / "folder").symlink_to(root.parent)
    os.link(secret, root / "hard")
    (root / "loop").symlink_to("loop")
    for path in ("link", "folder/secret.txt", "hard", "loop"):
        with pytest.raises(UnsafeFileError):
            background.run(space.read(path, 100))
    with pytest.raises(UnsafeFileError):
        background.run(space.write("folder/new.txt", b"x"))
    background.run(space.write("link", b"mine"))  # replaces the link itself
    assert secret.read_text() == "secret"
    assert background.run(space.read("link", 100)) == b"mine"
    assert [info.path for info in background.run(space.files())] == ["hard", "link"]


def test_special_files_are_refused_without_waiting(space: HostWorkspace) -> None:
    root = _root(space)
    os.mkfifo(root / "fifo")
    (root / "dir").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        for path in ("fifo", "dir", "socket", "missing"):
            with pytest.raises(UnsafeFileError):
                background.run(space.read(path, 100))
    assert background.run(space.files()) == []


def test_a_file_over_the_limit_is_refused_not_truncated(space: HostWorkspace) -> None:
    background.run(space.write("big", b"x" * 1000))
    with pytest.raises(UnsafeFileError, match="1000 bytes, more than 999"):
        background.run(space.read("big", 999))
    with pytest.raises(SandboxError, match="too large"):
        background.run(space.write("big", bytes(2**20 + 1)))


def test_a_sparse_giant_is_refused_by_its_size(space: HostWorkspace) -> None:
    with (_root(space) / "sparse").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(UnsafeFileError, match="more than 100"):
        background.run(space.read("sparse", 100))


def test_names_are_escaped_for_printing(space: HostWorkspace) -> None:
    root = os.fsencode(_root(space))
    for name in (b"a\nb", b"\x1b[31mred", b"\xff\xfe", "\u202egnp.exe".encode(), b"caf\xc3\xa9 x"):
        with open(os.path.join(root, name), "wb"):
            pass
    names = [info.path for info in background.run(space.files())]
    assert sorted(names) == sorted(["a\\nb", "\\x1b[31mred", "\\udcff\\udcfe", "\\u202egnp.exe", "café x"])
    assert all(name.isprintable() for name in names)


def test_a_tree_too_deep_or_too_wide_ends(space: HostWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = _root(space).joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    (deep / "bottom").touch()
    assert background.run(space.files()) == []
    monkeypatch.setattr(files, "MAX_FILES", 10)
    for i in range(20):
        (_root(space) / f"f{i}").touch()
    assert len(background.run(space.files())) <= 10


def test_closing_deletes_everything_and_nothing_outside(space: HostWorkspace) -> None:
    root = _root(space)
    (root / "out").symlink_to(root.parent)
    (root / "locked").mkdir(mode=0o000)
    background.run(space.close())
    background.run(space.close())
    assert not root.exists() and (root.parent / "secret.txt").exists()
    with pytest.raises(SandboxError, match="closed"):
        background.run(space.files())


def test_component_wise_opening_refuses_links_too(space: HostWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> int:
        raise OSError(38, "Function not implemented")

    if sys.platform == "linux":
        monkeypatch.setattr(files, "openat2", missing)
    root = _root(space)
    (root / "a").mkdir()
    (root / "a" / "f").write_text("fine")
    (root / "link").symlink_to("a")
    (root / "a" / "g").symlink_to("f")
    assert background.run(space.read("a/f", 10)) == b"fine"
    for path in ("link/f", "a/g"):
        with pytest.raises(UnsafeFileError):
            background.run(space.read(path, 10))


@given(path=st.text(alphabet=st.sampled_from("a./\\\0\n\u202eé"), max_size=30))
@settings(max_examples=200, deadline=None)
def test_no_relative_path_escapes(path: str) -> None:
    with contextlib.suppress(ValueError):
        parts = files.parts_of(path)
        assert parts and ".." not in parts and not path.startswith("/")
        assert os.path.normpath("/r/" + "/".join(parts)).startswith("/r/")


@given(name=st.text(max_size=20))
def test_escaped_names_are_printable_and_differ_for_different_control_characters(name: str) -> None:
    assert files.escaped(name).isprintable()


def test_at_every_level_the_host_reads_what_agents_wrote_and_no_links(box: Box) -> None:
    code = """
import os
open('real.txt', 'w').write('real')
os.symlink('/etc/passwd', 'link.txt')
os.symlink('/', 'root')
os.mkfifo('fifo')
os.makedirs('a/b'); open('a/b/c.txt', 'w').write('deep')
open('shut.txt', 'w').write('x'); os.chmod('shut.txt', 0)
"""
    with box.episode() as (space, kernel):
        background.run(space.write("given/data.csv", b"1,2\n"))
        assert background.run(kernel.execute(code)).status == "ok"
        assert background.run(space.read("real.txt", 10)) == b"real"
        assert background.run(space.read("a/b/c.txt", 10)) == b"deep"
        for path in ("link.txt", "root/etc/passwd", "fifo"):
            with pytest.raises(UnsafeFileError):
                background.run(space.read(path, 10**6))
        paths = [info.path for info in background.run(space.files())]
        assert paths == ["a/b/c.txt", "given/data.csv", "real.txt", "shut.txt"]
        assert background.run(kernel.execute("open('given/data.csv').read()")).output == "'1,2\\n'\n"
        background.run(kernel.execute("os.symlink('/tmp', 'given2')"))
        with pytest.raises(UnsafeFileError):
            background.run(space.write("given2/x", b"x"))


def test_agents_may_replace_and_delete_what_the_host_wrote(box: Box) -> None:
    with box.episode() as (space, kernel):
        background.run(space.write("data.csv", b"old"))
        result = background.run(
            kernel.execute("open('data.csv', 'w').write('new'); import os; os.rename('data.csv', 'd2.csv')")
        )
        assert result.status == "ok", result.output
        assert background.run(space.read("d2.csv", 10)) == b"new"
