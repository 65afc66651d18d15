"""Who hears of an incident besides the team that owns the dataset: subscribers, owners downstream, and who reported it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from incidents.models import Subscription
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset


def subscribe(dataset: Dataset, *, user: User, now: datetime) -> bool:
    """The user follows the dataset. Whether that is new."""
    with transaction.atomic():
        is_new = Subscription.objects.get_or_create(user=user, dataset=dataset, defaults={"created_at": now})[1]
        if is_new:
            audit_log.record(user.get_username(), "subscribe", f"dataset:{dataset.name}", now=now)
    return is_new


def unsubscribe(dataset: Dataset, *, user: User, now: datetime) -> bool:
    """The user follows it no more. Whether they did."""
    with transaction.atomic():
        gone = bool(Subscription.objects.filter(user=user, dataset=dataset).delete()[0])
        if gone:
            audit_log.record(user.get_username(), "unsubscribe", f"dataset:{dataset.name}", now=now)
    return gone
