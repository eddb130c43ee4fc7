"""Task folders in the three known layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DESCRIPTION = "Plants of a greenhouse, and whether they came into flower in the first summer.\n"

FLOWERS = {
    "train.csv": "id,light,water,flower\n"
    + "".join(f"{i},{i % 5},{i * 7 % 11},{'no' if i % 5 < 3 else 'yes'}\n" for i in range(20)),
    "test.csv": "id,light,water\n" + "".join(f"{i},{i % 5},{i * 7 % 13}\n" for i in range(20, 28)),
    "sample_submission.csv": "id,flower\n" + "".join(f"{i},no\n" for i in range(20, 28)),
    "answers.csv": "id,flower\n" + "".join(f"{i},{'no' if i % 5 < 3 else 'yes'}\n" for i in reversed(range(20, 28))),
    "description.md": DESCRIPTION,
    "task.yaml": "metric: accuracy\nlicence: CC0\n",
}

HEIGHTS = {
    "train.csv": "id,light,height\n" + "".join(f"{i},{i % 5},{10 + i % 5}\n" for i in range(20)),
    "test.csv": "id,light\n" + "".join(f"{i},{i % 5}\n" for i in range(20, 28)),
    "sample_submission.csv": "id,height\n" + "".join(f"{i},0\n" for i in range(20, 28)),
    "answers.csv": "id,height\n" + "".join(f"{i},{10 + i % 5}\n" for i in range(20, 28)),
    "description.md": "How high the plants of a greenhouse grew in the first summer, in centimetres.\n",
    "task.yaml": "metric: rmse\nreference: 0.1\n",
}


def write_flat(folder: Path, parts: Mapping[str, str | bytes | None]) -> Path:
    """Write all parts into one folder; None leaves a part out."""
    for name, text in parts.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def write_mle_bench(folder: Path, parts: Mapping[str, str]) -> Path:
    """Write the MLE-bench layout."""
    places = {"answers.csv": "prepared/private/test.csv", "task.yaml": "task.yaml"}
    return write_flat(folder, {places.get(name, f"prepared/public/{name}"): text for name, text in parts.items()})


def write_dsbench(root: Path, name: str, parts: Mapping[str, str]) -> Path:
    """Write one task of the DSBench layout."""
    places = {"answers.csv": f"answers/{name}/test_answer.csv", "description.md": f"task/{name}.txt"}
    return write_flat(root, {places.get(part, f"data_resplit/{name}/{part}"): text for part, text in parts.items()})
