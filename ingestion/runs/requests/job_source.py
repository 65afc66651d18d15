"""The source of a job: what it reads, by which options, and the secrets for it, which go beside the spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingestion.capture.null_instead import as_option
from ingestion.capture.tap.hidden_columns import KEY_OPTION, HiddenColumns
from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.hidden_columns import hidden_columns_of
from ingestion.captures.policies import required_columns_of
from ingestion.captures.topics import topic_to_look_at, topic_to_read
from ingestion.domain.pace import piece_rows
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.models import JobKind, JobRun
from ingestion.spark.contract.job_kinds import READING_KINDS
from ingestion.spark.contract.spec import SourceSpec
from lakehub.catalog.models import Connection, Feed
from lakehub.catalog.storages import is_captured

SOURCE_URL_VARIABLE, CHANGELOG_URL_VARIABLE = "LAKEHUB_SOURCE_URL", "LAKEHUB_CHANGELOG_URL"
HASH_KEY_VARIABLE = "LAKEHUB_HASH_KEY"
_KINDS_IN_A_LOG = (JobKind.REPLAY, JobKind.SET_POSITION)
"""They have to do with the changelog of a captured dataset, and not with its table."""


@dataclass(frozen=True)
class Reading:
    """What a job reads. `topic`: None: its rows do not come from a changelog."""

    feed: Feed
    connection: Connection
    topic: EventTopic | None
    hidden: HiddenColumns

    @property
    def secrets(self) -> dict[str, str]:
        secrets = {
            SOURCE_URL_VARIABLE: self.connection.url,
            CHANGELOG_URL_VARIABLE: "" if self.topic is None else self.topic.url,
            HASH_KEY_VARIABLE: self.hidden.key,
        }
        return {name: secret for name, secret in secrets.items() if secret}

    def spec(self, options: Mapping[str, Any], *, readers: int) -> SourceSpec:
        """`options`: the effective ones of the feed. The connection's URL may have a password, so it goes by reference."""
        topic = {} if self.topic is None else self.topic.as_options()
        refs = {} if self.topic is None else {"changelog_url": f"env:{CHANGELOG_URL_VARIABLE}"}
        refs |= {KEY_OPTION: f"env:{HASH_KEY_VARIABLE}"} if self.hidden.key else {}
        required = None if self.topic is None else required_columns_of(self.feed)
        return SourceSpec(
            plugin=self.connection.plugin,
            url_ref=f"env:{SOURCE_URL_VARIABLE}",
            object=self.feed.object,
            cursor_column=self.feed.cursor_column or None,
            overlap_s=float(options["overlap_s"]),
            options={name: text for name, text in topic.items() if name not in refs}
            | self.hidden.as_options()
            | as_option(required),
            option_refs=refs,
            # By the limit of the connection, of which the job does not know; its own pace it minds itself.
            chunk_rows=piece_rows(int(options["chunk_rows"]), self.connection.rows_per_s),
            commit_rows=int(options["commit_rows"]),
            commit_bytes=int(options["commit_mib"]) * 2**20,
            commit_s=float(options["commit_s"]),
            rows_per_s=float(options["rows_per_s"]) or None,
            is_paid_for=self.connection.rows_per_s is not None,
            readers=readers,
        )


def reading_of(run: JobRun, kind: str, *, is_look: bool, now: datetime) -> Reading | None:
    """None: it reads no source."""
    feed = run.copy.dataset.feed_or_none
    reads = kind in READING_KINDS or (kind in _KINDS_IN_A_LOG and is_captured_feed(feed))
    if feed is None or feed.connection is None or not reads:
        return None
    topic = _topic(run, feed.connection, is_look=is_look, now=now)
    return Reading(feed, feed.connection, topic, HiddenColumns() if topic is None else hidden_columns_of(feed))


def _topic(run: JobRun, connection: Connection, *, is_look: bool, now: datetime) -> EventTopic | None:
    """None: the rows of the dataset do not come from a changelog. A look knows what its run was read with (`follow_runs.held`)."""
    if not is_captured(connection.plugin):
        return None
    if not is_look:
        return topic_to_read(run.copy.dataset, now=now)
    accepted, emptied = (getattr(run, name, None) or 0 for name in ("accepted", "emptied"))
    return topic_to_look_at(run.copy.dataset, accepted, emptied)
