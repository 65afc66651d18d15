"""Who follows which dataset."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from lakehub.catalog.models import Dataset


class Subscription(models.Model):
    """A person who hears of a dataset's new incidents, of changes of their ETA and of their end."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="subscriptions")
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["dataset__name", "user__username"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "dataset"], name="one_subscription_a_person_and_dataset")
        ]

    def __str__(self) -> str:
        return f"{self.user} follows {self.dataset}"
