"""What a job is told of the changelog that it reads: the topic of a dataset, and the versions of its schema."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Max

from ingestion.capture.tap.position import emptied_before
from ingestion.captures.changelog import retention_s
from ingestion.captures.records import topic_of
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import KnownSchemas
from ingestion.models import Capture, SchemaVersion
from ingestion.schemas.captured_versions import subject_schema_of
from ingestion.schemas.renamed_columns import notes_of
from lakehub.catalog.models import Dataset


def topic_to_look_at(dataset: Dataset, accepted: int = 0, emptied: int = 0) -> EventTopic:
    """To ask whether there is something new. `accepted`, `emptied`: the newest version, and when the table was emptied last, as far as that is known. Asks no
    database."""
    changelog, url = settings.LAKEHUB_CHANGELOG, settings.LAKEHUB_CHANGELOG_URL
    known: dict[str, Any] = {"accepted": accepted, "emptied": emptied_before(emptied)}
    return EventTopic(changelog, url, topic_of(dataset), retention_s=retention_s(), **known)


def topic_to_read(dataset: Dataset, *, now: datetime) -> EventTopic:
    """`now`: by the wall's clock, before this was called."""
    look = topic_to_look_at(dataset)
    newest = SchemaVersion.objects.aggregate(newest=Max("pk"))["newest"] or 0
    of_subject = SchemaVersion.objects.filter(subject__name=look.topic).select_related("subject")
    versions = [*of_subject.order_by("version")]
    schemas = tuple(map(subject_schema_of, versions))
    accepted = max((each.version for each in versions if each.deprecated_at is None), default=0)
    capture = Capture.objects.filter(topic=look.topic).first()
    load, begins_at = (look.load, {}) if capture is None else (capture.load, capture.changelog_from)
    # Of another load nothing is known yet.
    is_known = capture is not None and capture.captured_load == load
    renames = notes_of(capture).column_renames() if is_known else ()
    emptied = emptied_before(capture.emptied_sequence) if capture is not None and is_known else b""
    known = KnownSchemas(newest, now)
    of_load: dict[str, Any] = {"schemas": schemas, "known": known, "load": load, "begins_at": begins_at}
    return replace(look, **of_load, renames=renames, emptied=emptied, accepted=accepted)
