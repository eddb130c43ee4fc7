"""Real distributions (a module and a dist-info folder) in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

WORKER = """
import warnings
import envs_registry

def work(id):
    env = envs_registry.make(id)
    env.reset(seed=0)
    return type(env).__name__, env.rounds

if __name__ == "__main__":
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for id in IDS:
            print(*pool.apply(work, (id,)))
"""


def install(site: Path, name: str, code: str, entry_points: str) -> None:
    module = name.replace("-", "_")
    (site / f"{module}.py").write_text(code)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mappa.envs]\n{entry_points}\n")


def python(site: Path, code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    script = site / "main_script.py"
    script.write_text(code)
    path = os.pathsep.join(map(str, (site, HERE, ROOT)))
    return subprocess.run(
        [sys.executable, *flags, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install(
        tmp_path,
        "good-plugin",
        "import envs_registry\n"
        "envs_registry.register('Plug/Module-v0', 'counting_toy:CountingEnv', kwargs={'rounds': 3})\n"
        "def register_more():\n"
        "    envs_registry.register('Plug/Function-v0', 'counting_toy:CountingEnv', kwargs={'rounds': 4})\n",
        "module = good_plugin\nfunction = good_plugin:register_more",
    )
    return tmp_path


@pytest.fixture
def broken_site(site: Path) -> Path:
    install(site, "broken-plugin", "import a_module_that_is_not_installed\n", "broken = broken_plugin")
    install(site, "quitting-plugin", "def go():\n    raise SystemExit('bye')\n", "quits = quitting_plugin:go")
    return site


def test_modules_and_functions_of_installed_distributions_register_at_the_first_lookup(site: Path) -> None:
    done = python(
        site,
        "import sys, envs_registry\n"
        "assert 'good_plugin' not in sys.modules\n"
        "print(*(s.id for s in envs_registry.registered('Plug')))\n"
        "print(envs_registry.make('Plug/Function').rounds)\n",
        "-W",
        "error::envs_registry.PluginWarning",
    )
    assert done.stdout.split() == ["Plug/Function-v0", "Plug/Module-v0", "4"], done.stderr


@pytest.mark.parametrize("lookup", ["make('Plug/Module-v0')", "spec('Plug/Module')", "registered()"])
def test_every_kind_of_lookup_loads_plugins(site: Path, lookup: str) -> None:
    done = python(site, f"import sys, envs_registry\nenvs_registry.{lookup}\nprint('good_plugin' in sys.modules)\n")
    assert done.stdout.split() == ["True"], done.stderr


def test_a_plugin_that_fails_is_named_once_and_the_others_still_load(broken_site: Path) -> None:
    done = python(
        broken_site,
        "import warnings, envs_registry\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(3):\n"
        "        envs_registry.make('Plug/Module-v0')\n"
        "for w in caught:\n"
        "    if w.category is envs_registry.PluginWarning:\n"
        "        print(w.message)\n",
    )
    broken, quits = done.stdout.splitlines()
    assert "broken-plugin" in broken and "broken = broken_plugin" in broken
    assert "ModuleNotFoundError: No module named 'a_module_that_is_not_installed'" in broken
    assert "quitting-plugin" in quits and "quits = quitting_plugin:go" in quits and "SystemExit: bye" in quits


def test_an_unknown_id_mentions_the_failed_plugins(broken_site: Path) -> None:
    done = python(broken_site, "import envs_registry\nenvs_registry.make('Broken/Env-v0')\n")
    assert done.returncode != 0
    error = done.stderr[done.stderr.index("UnknownEnvError") :]
    assert "broken-plugin" in error and "a_module_that_is_not_installed" in error and "quitting-plugin" in error


def test_a_plugin_that_takes_anothers_id_is_reported_not_obeyed(site: Path) -> None:
    install(
        site,
        "rival-plugin",
        "import envs_registry\n"
        "envs_registry.register('Plug/Module-v0', 'counting_toy:CountingEnv', kwargs={'rounds': 99})\n",
        "rival = rival_plugin",
    )
    done = python(site, "import envs_registry\nprint(envs_registry.make('Plug/Module-v0').rounds)\n")
    assert done.stdout.split() == ["3"]
    assert "PluginWarning" in done.stderr and "rival-plugin" in done.stderr and "registered already" in done.stderr


def test_a_plugin_may_look_environments_up_while_it_loads(site: Path) -> None:
    install(
        site,
        "curious-plugin",
        "import envs_registry\nprint('saw', len(envs_registry.registered('Plug')))\n",
        "curious = curious_plugin",
    )
    done = python(site, "import envs_registry\nprint(len(envs_registry.registered('Plug')))\n")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "2", done.stderr


def test_spawned_workers_see_plugin_ids_and_module_ids(site: Path) -> None:
    (site / "registering_module.py").write_text(
        "import envs_registry\n"
        "envs_registry.register('Own/Counting-v1', 'counting_toy:CountingEnv', kwargs={'rounds': 8})\n"
    )
    done = python(site, "IDS = ['Plug/Module-v0', 'registering_module:Own/Counting-v1']\n" + WORKER)
    assert done.stdout.splitlines() == ["CountingEnv 3", "CountingEnv 8"], done.stderr
