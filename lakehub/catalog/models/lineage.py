"""What is made from what: between datasets, and between tables whether they are onboarded or not."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.models.dataset import Dataset
from lakehub.catalog.models.places import Connection

PIPELINE_SOURCE = "pipeline"
"""Of edges from the inputs of a pipeline to its table: they come and go with its registration, whatever events tell."""


class LineageEdge(models.Model):
    """`downstream` is made from `upstream`; one to one where every row upstream gives one row downstream."""

    upstream = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="downstream_edges")
    downstream = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="upstream_edges")
    one_to_one = models.BooleanField(default=False)
    source = models.CharField(max_length=30, blank=True)
    """The source of lineage that told of it, which also takes it away. Empty: a person said so."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["upstream", "downstream"], name="one_edge_a_pair"),
            models.CheckConstraint(condition=~Q(upstream=models.F("downstream")), name="no_edge_to_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.upstream} → {self.downstream}"

    @classmethod
    def compared(cls) -> models.QuerySet[LineageEdge]:
        """Of each dataset the edge to the upstream that its rows are compared with: of several that are one to one the oldest
        whose upstream is not off-boarded."""
        live = cls.objects.filter(one_to_one=True, upstream__offboarded_at=None)
        older = live.filter(downstream=models.OuterRef("downstream"), pk__lt=models.OuterRef("pk"))
        return live.filter(~models.Exists(older))


class LineageTable(models.Model):
    """A table that lineage tells of, onboarded or not: `name` as the connection calls it. No connection: nobody can read it."""

    namespace = models.CharField(max_length=200)
    name = models.CharField(max_length=500)
    connection = models.ForeignKey(Connection, on_delete=models.SET_NULL, null=True, related_name="lineage_tables")
    object = models.CharField(max_length=500, blank=True)
    """What the connection calls it."""
    dataset = models.ForeignKey(Dataset, on_delete=models.SET_NULL, null=True, related_name="lineage_tables")
    dropped = models.BooleanField(default=False)
    """Lineage's newest word of it is that it was dropped."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["namespace", "name"], name="one_lineage_table_a_name")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class LineageLink(models.Model):
    """The newest lineage: `downstream` is made from `upstream`, whether they are onboarded or not."""

    upstream = models.ForeignKey(LineageTable, on_delete=models.CASCADE, related_name="downstream_links")
    downstream = models.ForeignKey(LineageTable, on_delete=models.CASCADE, related_name="upstream_links")
    one_to_one = models.BooleanField(default=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    """Whose programs posted it: it says something of the team's own datasets only. None: it is of the source that is read daily."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["upstream", "downstream"], condition=Q(team=None), name="one_lineage_link_a_pair"
            ),
            models.UniqueConstraint(fields=["upstream", "downstream", "team"], name="one_lineage_link_a_pair_and_team"),
        ]

    def __str__(self) -> str:
        return f"{self.upstream} → {self.downstream}"


class PostedRun(models.Model):
    """A run whose OpenLineage events were posted: one that has not completed yet, or of each job of a team the newest that has."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="posted_runs")
    job_namespace = models.CharField(max_length=200)
    job_name = models.CharField(max_length=500)
    run_id = models.CharField(max_length=100)
    event_at = models.DateTimeField()
    """The newest of its events, and never later than when that was posted."""
    completed_at = models.DateTimeField(null=True, blank=True)
    tables = models.JSONField(default=dict)
    """What it reads and writes, and what earlier runs of its job wrote or dropped, as `PostedState` has it."""
    drops = models.BooleanField(default=False)
    """A table of `tables` was dropped."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["team", "job_namespace", "job_name", "run_id"], name="one_posted_run_a_job_and_id"
            ),
            models.UniqueConstraint(
                fields=["team", "job_namespace", "job_name"],
                condition=Q(completed_at__isnull=False),
                name="one_completed_posted_run_a_job",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_namespace}/{self.job_name} {self.run_id}"


class LineageDay(models.Model):
    """A daily look, at lineage or at the tables: one row a day for each, claimed with a lease, ended with what it changed."""

    day = models.DateField()
    source = models.CharField(max_length=30, blank=True)
    """Where lineage was read from. Empty: the look at the tables."""
    attempt = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(default=dict, blank=True)
    """By kind of change (added, pruned, changed, missing, offboarded, refused, unreadable, out_of_reach), what it was."""
    error = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-day", "source"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["day", "source"], name="one_look_a_day_and_source")]

    def __str__(self) -> str:
        return f"{'lineage' if self.source else 'tables'} of {self.day}"
