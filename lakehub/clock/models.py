"""How far the instance's clock is ahead of the wall, where LAKEHUB_CLOCK=shifted, and what it showed last: a row each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from django.db import models


class ClockShift(models.Model):
    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    offset = models.DurationField(default=timedelta)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="clock_has_one_row")]

    def __str__(self) -> str:
        return f"wall + {self.offset}"

    @classmethod
    def current(cls) -> timedelta:
        return cls.objects.values_list("offset", flat=True).first() or timedelta()

    @classmethod
    def move_to(cls, instant: datetime) -> None:
        """From now on the clock shows `instant` and goes on from there."""
        cls.objects.update_or_create(id=1, defaults={"offset": instant - datetime.now(UTC)})


class LatestInstant(models.Model):
    """The latest instant that the pacemaker has seen, so that a clock that was set back is noticed, also after a restart."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="latest_instant_has_one_row")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"
