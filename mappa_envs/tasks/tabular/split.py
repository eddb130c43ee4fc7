"""Seeded, stratified choice of test rows that depends on no library's random numbers."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pandas as pd

TEST_EVERY = 4
"""One row in so many is a test row."""


def split_rows(target: pd.Series, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Give every row an id and say which rows are for testing.

    Rows are put in the order of the target, ties in an order drawn by hash, and from every four neighbours one is
    drawn for testing: classes keep their shares and numbers their distribution. Ids are drawn independently, so that
    they say nothing about the target or the place in the source.

    Args:
        target: Labels or numbers, no missing value, shape (rows,).
        name: Seed: another name gives another split.

    Returns:
        Ids, a permutation of 0 to rows - 1, and the mask of the test rows, both of shape (rows,).
    """
    rows = len(target)
    ids = np.empty(rows, dtype=np.int64)
    ids[np.argsort(_draws(name, "id", rows))] = np.arange(rows)
    draws = _draws(name, "test", rows)
    codes, _ = pd.factorize(target, sort=True)
    order = np.lexsort((draws, codes))
    blocks = order[: rows - rows % TEST_EVERY].reshape(-1, TEST_EVERY)
    picks = _draws(name, "pick", len(blocks)) % TEST_EVERY
    test = np.zeros(rows, dtype=np.bool_)
    test[blocks[np.arange(len(blocks)), picks]] = True
    return ids, test


def _draws(name: str, salt: str, count: int) -> npt.NDArray[np.uint64]:
    prefix = hashlib.blake2b(f"{name}\0{salt}\0".encode(), digest_size=8)
    digests = []
    for index in range(count):
        one = prefix.copy()
        one.update(index.to_bytes(4, "big"))
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
