"""A pipeline that was registered, by its files."""

from __future__ import annotations

from django.db import models

from lakehub.catalog.models import Dataset


class Pipeline(models.Model):
    """What makes the rows of `dataset`, whose feed is of the kind `pipeline`. `files`: by name their texts, as they were registered last."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="pipeline", primary_key=True)
    files = models.JSONField()
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.dataset)
