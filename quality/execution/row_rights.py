"""Who may see the records that a result names: they are rows of data, of the tested dataset and of those it was compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser

from lakehub.accounts.models import User
from lakehub.accounts.permissions import teams_permitting
from lakehub.catalog.models import Dataset
from quality.domain.named_records import RECORD_FIELDS
from quality.measuring.table_bindings import COMPARED_DATASETS


class RowRights:
    """Of one viewer, for any number of results: one query, and one more for each set of other datasets."""

    def __init__(self, viewer: User | AnonymousUser) -> None:
        self._viewer = viewer
        self._seen: dict[frozenset[str], bool] = {}

    def may_see(self, dataset: Dataset, detail: object) -> bool:
        """`detail` is that of a result of one of the dataset's tests."""
        others = detail.get(COMPARED_DATASETS, ()) if isinstance(detail, Mapping) else ()
        return dataset.team_id in self._teams and self._may_see_all(others)

    def visible_detail(self, dataset: Dataset, detail: Any) -> Any:
        """Without the records, where they are not the viewer's to see."""
        if not isinstance(detail, Mapping) or not any(name in detail for name in RECORD_FIELDS):
            return detail
        if self.may_see(dataset, detail):
            return detail
        return {name: value for name, value in detail.items() if name not in RECORD_FIELDS}

    @cached_property
    def _teams(self) -> frozenset[int]:
        return teams_permitting(self._viewer, "see rows")

    def _may_see_all(self, names: Iterable[str]) -> bool:
        asked = frozenset(map(str, names))
        if asked and asked not in self._seen:
            owners = Dataset.objects.filter(name__in=asked).values_list("team", flat=True)
            self._seen[asked] = len(owners) == len(asked) and set(owners) <= self._teams
        return not asked or self._seen[asked]
