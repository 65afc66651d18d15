"""Old rows go, a few at a time, so that no statement holds the database for long."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet

BATCH_SIZE = 5_000


def delete_old_rows(rows: QuerySet[Any, Any], *, age: str, before: datetime, where: Q | None = None) -> int:
    """Deletes those of `rows` whose column `age` is before `before`, and that fit `where`. The number deleted.

    Rows are written in the order of their keys, so it walks from the oldest on and ends where one is younger: what there
    is to delete is found without an index. A row without an age is still needed, and is passed by.
    """
    deleted, last = 0, 0
    while looked_at := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", age)[:BATCH_SIZE]):
        old = [pk for pk, at in looked_at if at is not None and at < before]
        gone = rows.filter(where or Q(), pk__in=old).values_list("pk", flat=True)
        deleted += _delete_keys(rows.model, list(gone))
        if any(at is not None and at >= before for _, at in looked_at):
            break
        last = looked_at[-1][0]
    return deleted


def _delete_keys(model: type[Model], keys: list[int]) -> int:
    return model._default_manager.filter(pk__in=keys).delete()[1].get(model._meta.label, 0) if keys else 0
