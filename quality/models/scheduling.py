"""Fair turns of copies and teams, and concurrency slots of limited resources."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from lakehub.accounts.models import Team
from lakehub.catalog.models import DatasetCopy
from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric


class CopyTurn(models.Model):
    """When a copy was served last, as a number that grows: the one that waits longest goes first."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="turn", primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.copy}: {self.number}"


class TeamTurn(models.Model):
    """When a team was served last, in the same numbers."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="turn", primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.team}: {self.number}"


SLOW_SOURCES = "slow sources"
"""What all sources share that are slow just now: so many slots as workers may wait for them."""


class SlowSource(models.Model):
    """A connection of an engine, `sqlalchemy:ops`, that kept the last one waiting who read there."""

    resource = models.CharField(max_length=130, unique=True)
    since = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.resource


class ConcurrencySlot(models.Model):
    """One of the claims that may run at once on what is scarce: an engine, or one connection of it."""

    resource = models.CharField(max_length=130)
    number = models.PositiveSmallIntegerField()
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["resource", "number"], name="one_slot_a_number")]

    def __str__(self) -> str:
        return f"{self.resource} {self.number}"

    @staticmethod
    def limits_of(uses: str) -> dict[str, int]:
        """The limited resources of what a unit uses, with how many slots each has: of `sqlalchemy:ops` the engine and the connection."""
        if uses == SLOW_SOURCES:
            return {SLOW_SOURCES: settings.LAKEHUB_SLOW_SOURCES}
        engine, _, connection = uses.partition(":")
        by_engine: dict[str, int] = settings.LAKEHUB_ENGINE_LIMITS
        limits = {engine: by_engine[engine]} if engine in by_engine else {}
        return limits | {uses: settings.LAKEHUB_CONNECTION_LIMIT} if connection else limits
