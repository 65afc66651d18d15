"""Another index was chosen for a copy, and is being built."""

from __future__ import annotations

from django.db import models

from lakehub.catalog.models import DatasetCopy


class IndexChange(models.Model):
    """The jobs of a copy use the index `former`, until the one that its feed names is built. The row goes then."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="index_change", primary_key=True)
    former = models.CharField(max_length=50)

    def __str__(self) -> str:
        return f"{self.copy} from {self.former}"
