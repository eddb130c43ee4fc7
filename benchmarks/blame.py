"""Whom does the rule judge for data teams blame? `python benchmarks/blame.py [--tasks NAME ...] [--faults NAME ...]`.

Plays the scripted data team on embedded tables with one role committing a fault, for every fault and table, and prints
each role's score with the difference to the honest team.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import mappa_envs  # noqa: F401  registers the built-in environments
from mappa_envs.envs.data_pipeline import DataPipeline
from mappa_envs.tasks.tabular.sources import build_tabular_source
from mappa_rl.evaluation.blame import blame_cases, blame_row, blame_table
from mappa_rl.policy.data_sabotage import SABOTAGES

TABLES = ("wine", "breast_cancer", "diabetes_progression", "penguins", "concrete")


def main() -> None:
    """Print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=TABLES, help="names of embedded tables")
    parser.add_argument("--faults", nargs="+", default=tuple(SABOTAGES), choices=tuple(SABOTAGES))
    parser.add_argument("--full", action="store_true", help="let the modeler try every kind of model")
    options = parser.parse_args()
    tasks = build_tabular_source({"names": tuple(options.tasks), "eval_share": 0}, "train")
    started = time.monotonic()
    cases = []
    for case in blame_cases(
        lambda: DataPipeline(tasks=tasks),
        tasks,
        range(len(options.tasks)),
        faults=options.faults,
        quick=not options.full,
        concurrency=os.cpu_count() or 1,
    ):
        cases.append(case)
        print(blame_row(case), file=sys.stderr, flush=True)
    print(blame_table(cases))
    print(f"{time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
