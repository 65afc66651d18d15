"""Copies that are made from another copy of their dataset, file by file, instead of from its source."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from lakehub.catalog.models import DatasetCopy


class Replica(models.Model):
    """`copy` is replicated from `source`, in another data center. `mib_per_s`: how fast its jobs may read there; null: as fast as they can."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="replica", primary_key=True)
    source = models.ForeignKey(DatasetCopy, on_delete=models.PROTECT, related_name="replicas")
    mib_per_s = models.PositiveIntegerField(null=True, blank=True)
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(copy=F("source")), name="replica_of_another_copy"),
        ]

    def __str__(self) -> str:
        return f"{self.copy} from {self.source}"
