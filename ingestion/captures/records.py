"""The capture of a dataset: its topic, and how often it was loaded whole."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Max, Q

from ingestion.models import Capture, JobRun
from lakehub.catalog.models import Dataset, Feed


def topic_of(dataset: Dataset) -> str:
    """Of the changelog, and the subject of its schemas: two datasets never have one. Asks no database."""
    return f"{dataset.name}.{dataset.pk}"


def capture_of(feed: Feed) -> Capture:
    """Made where there is none yet."""
    capture, _ = Capture.objects.get_or_create(feed=feed, defaults={"topic": topic_of(feed.dataset)})
    return capture


def begin_load(capture: Capture, run: UUID) -> int:
    """The capture was stopped, and the dataset is loaded whole once more, from this run on: the number of the load, which is begun once however often
    the run is tried. The tap captures for it as soon as it sees it."""
    others = Q(load_run=None) | ~Q(load_run=run)
    newest = JobRun.objects.aggregate(newest=Max("pk"))["newest"] or 0
    Capture.objects.filter(others, pk=capture.pk).update(load=F("load") + 1, load_run=run, load_upto_run=newest)
    capture.refresh_from_db()
    return capture.load
