"""Cells that reach for what is not theirs: host files, secrets, other kernels, the network, the control channel."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import CANARY, Box, eventually, processes_with

from mappa_envs import background
from mappa_envs.sandbox import Level
from mappa_envs.sandbox.doctor import LACKS

TRY = """
import os
def attempt(action, *args):
    try:
        action(*args)
        return 'done'
    except OSError as error:
        return type(error).__name__
"""


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    """A file of the host that holds an answer, readable by its owner."""
    path = tmp_path / "truth.csv"
    path.write_text("answer\n42\n")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "action",
    [
        "lambda p: open(p).read()",
        "lambda p: os.symlink(p, 'link') or open('link').read()",
        "lambda p: os.link(p, 'hard')",
        "lambda p: os.rename(p, 'moved')",
        "lambda p: os.unlink(p)",
        "lambda p: open(p, 'a').write('x')",
        "lambda p: os.listdir(os.path.dirname(p))",
        "lambda p: os.truncate(p, 0)",
        "lambda p: open(os.path.dirname(p) + '/new', 'w')",
    ],
)
def test_ground_truth_cannot_be_read_or_changed(box: Box, truth: Path, action: str) -> None:
    if box.level == Level.UID:
        truth.chmod(0o600)
    outcome = box.cell(TRY, f"attempt({action}, {str(truth)!r})").output
    if box.level == Level.UID and "listdir" in action:
        assert any("hiding files that every user may read" in lack for lack in LACKS[Level.UID])
        return
    expected = {"'FileNotFoundError'\n"} if box.level == Level.FULL else {"'PermissionError'\n", "'OSError'\n"}
    assert outcome in expected
    assert truth.read_text() == "answer\n42\n"
    assert [path.name for path in truth.parent.iterdir()] == ["truth.csv"]


@pytest.mark.parametrize(
    "action", ["os.stat", "lambda p: os.chmod(p, 0o777)", "lambda p: os.utime(p, (0, 0))", "os.chdir"]
)
def test_at_level_3_ground_truth_does_not_even_exist(full: Box, truth: Path, action: str) -> None:
    assert full.cell(TRY, f"attempt({action}, {str(truth)!r})").output == "'FileNotFoundError'\n"


def test_what_level_2_cannot_hide_is_reported(landlocked: Box, truth: Path) -> None:
    assert landlocked.cell(TRY, f"attempt(os.stat, {str(truth)!r})").output == "'done'\n"
    assert any("hiding that files outside exist" in lack for lack in LACKS[Level.LANDLOCK])


def test_this_project_its_tests_and_its_data_are_hidden(box: Box) -> None:
    if box.level == Level.UID:
        assert any("hiding files that every user may read" in lack for lack in LACKS[Level.UID])
        return
    code = f"""
{TRY}
import importlib.util, sys
here = {str(Path(__file__))!r}
package = {str(Path(__file__).parents[3] / "mappa_envs" / "grading")!r}
print(attempt(lambda: open(here).read()), attempt(os.listdir, package), importlib.util.find_spec('mappa_envs'))
"""
    hidden = "FileNotFoundError" if box.level == Level.FULL else "PermissionError"
    assert box.cell(code).output == f"{hidden} {hidden} None\n"


def test_no_variable_of_the_host_is_in_any_environment_or_in_memory(box: Box) -> None:
    code = f"""
import gc, glob, os
parts = {CANARY[:12]!r}, {CANARY[12:]!r}
secret = ''.join(parts)
seen = [name for name, value in os.environ.items() if secret in value]
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + ['/proc/self/environ']:
    try:
        seen += [path] if secret.encode() in open(path, 'rb').read() else []
    except OSError:
        pass
del os.environ['HOME']
seen += [o for o in gc.get_objects() if type(o) is dict and o.get('MAPPA_TEST_SECRET')]
seen
"""
    assert box.cell(code).output == "[]\n"


def test_the_memory_inherited_from_the_zygote_names_no_host_file(full: Box) -> None:
    folder = str(full.sandbox._server.folder)
    code = f"""
import gc
half = {folder[:8]!r}, {folder[8:]!r}
[text for d in gc.get_objects() if type(d) is dict for text in list(d.values())
 if type(text) is str and text.startswith(half[0]) and text.endswith(half[1])]
"""
    assert full.cell(code).output == "[]\n"


def test_workspaces_of_other_episodes_cannot_be_found(box: Box) -> None:
    with box.episode() as (space, kernel), box.episode() as (_, other):
        background.run(kernel.execute("open('mine.txt', 'w').write('mine')"))
        code = f"""
{TRY}
print([p for p in ('/ws', '/sockets') if os.path.isdir(p) and os.listdir(p)])
print(attempt(os.listdir, os.path.dirname(os.getcwd())), attempt(open, {str(space.path)!r} + '/mine.txt'))
import glob
print([path for pattern in ('/*/mine.txt', '/*/*/mine.txt', '/agent/**/mine.txt', '/proc/*/cwd/mine.txt',
  '/proc/*/root/ws/*/mine.txt') for path in glob.glob(pattern, recursive=True)])
"""
        lines = background.run(other.execute(code)).output.splitlines()
        assert lines[0] == "[]" and lines[2] == "[]"
        listing, opening = lines[1].split()
        assert opening in ("FileNotFoundError", "PermissionError")
        if box.level == Level.LANDLOCK:
            assert listing == "PermissionError"


def test_agents_of_one_episode_share_files_and_nothing_else(box: Box) -> None:
    with box.episode(agents=2) as (_, first, second):
        background.run(first.execute("x = 1; open('shared.txt', 'w').write('hello')"))
        assert (
            background.run(second.execute("open('shared.txt', 'a').write('!'); open('shared.txt').read()")).output
            == "'hello!'\n"
        )
        assert background.run(first.execute("open('shared.txt').read()")).output == "'hello!'\n"
        assert background.run(second.execute("x")).error_name == "NameError"


def test_other_kernels_and_the_control_socket_cannot_be_connected_to(box: Box) -> None:
    with box.episode() as (_, victim), box.episode() as (_, kernel):
        host_path = f"{victim.process.prefix}-1"
        assert Path(host_path).is_socket()
        code = f"""
{TRY}
import socket
reached = []
paths = [{host_path!r}, '/agent/sockets/../k1/k-1']
try:
    paths += [line.split()[-1] for line in open('/proc/net/unix').readlines()[1:] if '/' in line]
except OSError:
    pass
own = os.path.realpath('/agent/sockets')
for path in paths:
    with socket.socket(socket.AF_UNIX) as s:
        if attempt(s.connect, path) == 'done' and not os.path.realpath(path).startswith(own):
            reached.append(path)
reached
"""
        reached = background.run(kernel.execute(code, timeout=20)).output
        if box.level == Level.FULL:
            assert reached == "[]\n"
        else:
            assert any("hiding socket files" in lack for lack in LACKS[box.level])


def test_abstract_sockets_of_other_kernels_are_out_of_reach(box: Box) -> None:
    with box.episode() as (_, server), box.episode() as (_, client):
        listen = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0mappa-test'); s.listen()"
        assert background.run(server.execute(listen)).status == "ok"
        connect = "import socket; socket.socket(socket.AF_UNIX).connect('\\0mappa-test')"
        outcome = background.run(client.execute(connect)).error_name
        if box.level == Level.UID:
            assert any("abstract sockets" in lack for lack in LACKS[Level.UID])
        else:
            assert outcome in ("ConnectionRefusedError", "PermissionError")


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
        "import socket; socket.create_connection(('8.8.8.8', 53), 1)",
        "import socket; socket.socket(socket.AF_INET6)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "import urllib.request; urllib.request.urlopen('http://example.com', timeout=1)",
    ],
)
def test_there_is_no_network(box: Box, code: str) -> None:
    result = box.cell(code)
    assert result.status == "error" and result.error_name in ("OSError", "URLError", "gaierror", "PermissionError")


SYSCALLS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, *args):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*args)
    return result == -1 and ctypes.get_errno() in (errno.EPERM, errno.EACCES)
print([name for name, *args in (
    ('ptrace', 16, 1, 0, 0), ('unshare', 0x10000000), ('unshare', 0x20000000), ('unshare', 0x40000000),
    ('mount', b'none', b'/tmp', b'tmpfs', 0, None), ('umount2', b'/proc', 2), ('chroot', b'.'),
    ('setuid', 0), ('setgid', 0), ('setresuid', 0, 0, 0), ('setns', 0, 0), ('sethostname', b'x', 1),
    ('swapon', b'x', 0), ('reboot', 0), ('perf_event_open', 0, 0, 0, 0, 0) if hasattr(libc, 'perf_event_open')
    else ('setuid', 0), ('mknod', b'device', 0o60600, 0x0801), ('shmget', 0, 4096, 0o1600),
) if not refused(name, *args)])
"""


def test_privileged_system_calls_are_refused(box: Box) -> None:
    assert box.cell(SYSCALLS).output == "[]\n"


def test_new_namespaces_by_clone_are_refused(box: Box) -> None:
    assert "ot permitted" in box.cell("!unshare -Ur true").output
    assert "ot permitted" in box.cell("!unshare -Urnpf true").output


def test_signals_reach_nothing_outside(box: Box) -> None:
    with box.episode() as (_, sibling), box.episode() as (_, kernel):
        code = """
import os
own = {int(task) for task in os.listdir('/proc/self/task')} if os.path.exists('/proc/self/task') else {os.getpid()}
for pid in [*range(1, 40), os.getppid()]:
    if pid not in own:
        try: os.kill(pid, 9)
        except OSError: pass
"""
        background.run(kernel.execute(code))
        background.run(kernel.execute("import os; os.kill(0, 9)"))
        assert background.run(sibling.execute("1 + 1")).output == "2\n"
        assert box.sandbox._server.alive


def test_daemons_die_with_their_kernel(box: Box) -> None:
    marker = "23456.789"
    code = f"""
import os, subprocess
for _ in range(3):
    subprocess.Popen(['sleep', '{marker}'], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep', '{marker}'])
    os._exit(0)
"""
    with box.episode() as (_, kernel):
        background.run(kernel.execute(code))
        assert eventually(lambda: len(processes_with(marker)) == 4)
    assert eventually(lambda: not processes_with(marker))


@pytest.mark.parametrize("end", ["os._exit(3)", "ctypes.string_at(0)", "os.abort()", "os.kill(os.getpid(), 9)"])
def test_a_kernel_that_dies_is_noticed_at_once_and_its_orphans_die(box: Box, end: str) -> None:
    marker = "34567.891"
    with box.episode() as (_, kernel):
        started = time.monotonic()
        code = (
            f"import ctypes, os, subprocess, time\nsubprocess.Popen(['sleep', '{marker}'], start_new_session=True)\n"
            f"print('x', flush=True); time.sleep(0.2); {end}"
        )
        result = background.run(kernel.execute(code, timeout=20))
        assert result.status == "died" and result.output.startswith("x\n[the Python process ended: ")
        assert time.monotonic() - started < 10  # not a timeout
        assert eventually(lambda: not processes_with(marker))
        assert not kernel.alive


def test_closing_all_descriptors_ends_within_the_deadline(box: Box) -> None:
    result = box.cell("import os; os.closerange(0, 4096)", timeout=1)
    assert result.status in ("died", "timeout_killed", "timeout")


def test_pickles_are_never_loaded_by_the_host(box: Box, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    code = f"""
import pickle, numpy
class Bomb:
    def __reduce__(self): return (eval, ("open({str(proof)!r}, 'w')",))
pickle.dump(Bomb(), open('model.pkl', 'wb'))
numpy.save('array.npy', numpy.array([Bomb()], dtype=object), allow_pickle=True)
"""
    with box.episode() as (space, kernel):
        assert background.run(kernel.execute(code)).status == "ok"
        assert b"executed" in background.run(space.read("model.pkl", 10_000))
        assert {info.path for info in background.run(space.files())} == {"model.pkl", "array.npy"}
    assert not proof.exists()


FORGE = """
session = get_ipython().kernel.session
parent = get_ipython().kernel.get_parent()
send = lambda kind, content, channel: session.send(channel, kind, content, parent=parent)
iopub, shell = get_ipython().kernel.iopub_socket, get_ipython().kernel.shell_stream
send('stream', {'name': 'stdout', 'text': 'FORGED'}, iopub)
send('stream', {'name': 'stdout', 'text': 7, 'dropped': 'many'}, iopub)
send('error', {'ename': 5, 'traceback': 'no list'}, iopub)
send('display_data', {'data': 'no dict'}, iopub)
send('display_data', {'data': {'text/plain': ['x'], 'image/png': 3}}, iopub)
send('status', {'execution_state': 'idle'}, iopub)
send('execute_reply', {'status': 'ok'}, iopub)
iopub.send_multipart([b'garbage'])
iopub.send_multipart([b'<IDS|MSG>', b'bad signature', b'{}', b'{}', b'{}', b'{}'])
iopub.send_multipart([b'<IDS|MSG>', session.sign([b'['] * 4), b'[', b'[', b'[', b'['])
deep = [b'{}', b'[' * 100_000, b'{}', b'{}']
iopub.send_multipart([b'<IDS|MSG>', session.sign(deep), *deep])
"""


def test_forged_and_malformed_messages_never_reach_the_host_as_errors(box: Box) -> None:
    with box.episode() as (_, kernel):
        result = background.run(kernel.execute(FORGE))
        assert result.status in ("ok", "error")
        assert background.run(kernel.execute("1 + 1")).output == "2\n"


def test_a_message_too_large_to_take_does_not_hurt_the_host(box: Box) -> None:
    code = "get_ipython().kernel.iopub_socket.send_multipart([bytes(40_000_000)])"
    with box.episode() as (_, kernel):
        background.run(kernel.execute(code))
        after = background.run(kernel.execute("print('still here')", timeout=5))
        assert after.status in ("ok", "died", "timeout", "timeout_killed")


def test_a_thread_that_prints_later_does_not_write_into_the_next_cell(box: Box) -> None:
    with box.episode() as (_, kernel):
        code = """
import threading, time
def later():
    time.sleep(0.3)
    print('LATE')
threading.Thread(target=later).start()
"""
        background.run(kernel.execute(code))
        assert "LATE" not in background.run(kernel.execute("time.sleep(0.6); print('mine')")).output


@pytest.mark.parametrize("code", ["input()", "import getpass; getpass.getpass()", "open('/dev/tty').read()", "%debug"])
def test_asking_the_user_fails_at_once(box: Box, code: str) -> None:
    assert box.cell(code, timeout=10).status in ("ok", "error")


def test_sys_exit_is_reported_and_the_kernel_lives(box: Box) -> None:
    with box.episode() as (_, kernel):
        result = background.run(kernel.execute("import sys; sys.exit(3)"))
        assert (result.status, result.error_name) == ("error", "SystemExit")
        assert background.run(kernel.execute("exit()")).status == "ok"
        assert background.run(kernel.execute("1 + 1")).output == "2\n"


def test_running_a_shell_through_ctypes_or_subclasses_is_confined_by_the_system(box: Box, truth: Path) -> None:
    if box.level == Level.UID:
        truth.chmod(0o600)
    code = f"""
import ctypes
status = ctypes.CDLL(None).system(b'cat {truth} > stolen.txt 2>/dev/null')
popen = [c for c in object.__subclasses__() if c.__name__ == 'Popen']
print(status != 0, open('stolen.txt').read() == '')
"""
    assert box.cell(code).output == "True True\n"


def test_objects_with_hostile_methods_stay_in_the_kernel(box: Box) -> None:
    code = """
class Hostile:
    def __del__(self): raise SystemExit
    def __eq__(self, other): raise KeyboardInterrupt
    def __repr__(self): raise MemoryError
state = Hostile()
state
"""
    with box.episode() as (_, kernel):
        assert background.run(kernel.execute(code)).status in ("ok", "error")
        assert background.run(kernel.execute("1 + 1")).output == "2\n"


def test_root_is_not_root_inside(box: Box) -> None:
    lines = box.cell("import os; print(os.getuid() != 0, os.access('/etc/shadow', os.R_OK))").output
    assert lines == "True False\n"
