"""What people declare of their data, over its metadata: rules of columns, and business metrics."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.models import Dataset
from quality.domain.generation.rules import Rule


class ColumnRule(models.Model):
    """What must hold of a column, or of the rows where none is named; with `by`, of each value of that column."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="column_rules")
    kind = models.CharField(max_length=20)
    """One of quality.domain.generation.rules.RULE_KINDS."""
    column = models.CharField(max_length=100, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    """By the names of quality.domain.generation.rules; shares and durations are texts, such as 1% and 7d."""
    by = models.CharField(max_length=100, blank=True)
    enabled = models.BooleanField(default=True)
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["dataset", "column", "kind", "by"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "column", "kind", "by"], name="one_rule_of_a_kind")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.dataset}.{self.column}" + (f" by {self.by}" if self.by else "")

    @property
    def rule(self) -> Rule:
        return Rule(self.kind, self.column, self.parameters, self.by)


class Metric(models.Model):
    """A number that the business goes by, as a query; its tests are those of the dataset that it is cut by."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    description = models.TextField(blank=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="metrics")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="metrics")
    """Its partitions are those of the metric; the queries call it `this`."""
    inputs = models.ManyToManyField(Dataset, related_name="feeds_metrics", blank=True)
    """The other datasets that the queries read, by their names."""
    sql = models.TextField()
    second_sql = models.TextField(blank=True)
    """Another definition, which should give the same number."""
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    week_over_week = models.CharField(max_length=20, blank=True)
    """How much of it may change within a week, such as 20%."""
    agreement = models.CharField(max_length=20, default="0.1%")
    """How far apart the two definitions may be, as a share of the first."""
    anomaly = models.BooleanField(default=False)
    """Compared with its own past."""
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
