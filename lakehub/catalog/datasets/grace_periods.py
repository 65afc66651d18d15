"""When a dataset is, and was, in grace: a change of `grace_until` says nothing about the time before it."""

from __future__ import annotations

from datetime import datetime

from lakehub.catalog.models import Dataset, GracePeriod


def record_grace_period(dataset: Dataset, until: datetime | None, *, now: datetime) -> None:
    """From `now` on it is in grace until then; None, or a time that is over: no longer. The period that is on is moved or
    ended, and one that is over stays as it was. To be called in the transaction that sets `grace_until`."""
    still_on = GracePeriod.objects.filter(dataset=dataset, ends_at__gt=now)
    if until is None or until <= now:
        still_on.filter(began_at__gte=now).delete()
        still_on.update(ends_at=now)
    elif not still_on.update(ends_at=until):
        GracePeriod.objects.create(dataset=dataset, began_at=now, ends_at=until)
