"""What taps count of their sources' rows comes to the database once, whatever ends them, and is compared with the log by the hour."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ingestion.capture.binlog.events import BinlogEvent
from ingestion.capture.source_counts import HourCounts
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.encoded_table import EncodedTable
from ingestion.captures.records import topic_of
from ingestion.captures.servers import captures_by_server
from ingestion.changelog import CHANGELOGS, ChangelogConfig, ChangelogWriter, Outgoing
from ingestion.heatpipe.encoder import MENDED_SOURCE, Encoder, Mended
from ingestion.lake.captured import source_hours
from ingestion.models import Capture, CaptureHour, Finding, SourceHour, TapServer
from ingestion.positions import audit
from ingestion.runs import retention
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from ingestion.tapping.server_tap import LeaseLost
from ingestion.tapping.session import keep_stored_counts
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.query_plans import plans_of
from tests.unit.ingestion.capture.tapping import TRIPS, Log, Server, Tapping, inserted, row, transaction
from tests.unit.ingestion.heatpipe.messages import TRIP, change, subject_schema
from tests.web.ingestion.captured_flights import capture_flights
from tests.web.ingestion.captures.taps import SERVER, TapWorld, captured
from tests.web.ingestion.test_capture_hours import commit, load

pytestmark = pytest.mark.django_db
TEN = datetime.fromisoformat("2026-11-17T10:00:00+00:00")
AT_TEN, AT_ELEVEN = "2026-11-17T10", "2026-11-17T11"


def counts() -> dict[tuple[str, str], int | None]:
    """By topic and hour."""
    rows = SourceHour.objects.values_list("capture__topic", "start", "messages")
    return {(topic.partition(".")[0], f"{start:%H}"): messages for topic, start, messages in rows}


@dataclass
class Counted:
    """A server that is tapped, whose sessions count as the test says."""

    world: TapWorld = field(default_factory=TapWorld)

    def __post_init__(self) -> None:
        self.trips, self.riders = (topic_of(each) for each in captured("trips", "riders"))
        self.tap = self.world.tap()
        self.world.run(self.tap, 4)

    def tell(self, hours: HourCounts) -> None:
        self.world.sessions[-1].counts = hours  # type: ignore[assignment]
        self.world.run(self.tap, 11)


def test_counts_are_kept_as_they_grow_and_the_tap_forgets_hours_that_are_over() -> None:
    of = Counted()
    of.tell({AT_TEN: {of.trips: 5, of.riders: 1}})
    of.tell({AT_TEN: {of.trips: 7, of.riders: 1}, AT_ELEVEN: {of.trips: 1}})
    assert counts() == {("trips", "10"): 7, ("riders", "10"): 1, ("trips", "11"): 1}
    assert of.world.sessions[-1].forgotten == AT_ELEVEN
    of.tell({AT_ELEVEN: {of.trips: None, "gone.9": 3}})
    assert counts() == {("trips", "10"): 7, ("riders", "10"): 1, ("trips", "11"): None}


def test_who_has_lost_the_server_keeps_nothing() -> None:
    of = Counted()
    TapServer.objects.update(leased_by="another")
    with pytest.raises(LeaseLost):
        of.tell({AT_TEN: {of.trips: 5}})
    assert counts() == {}


def test_what_a_killed_process_has_not_told_is_told_by_the_next_one() -> None:
    of = Counted()
    plan = captures_by_server()[SERVER]
    for _ in range(2):
        keep_stored_counts(SERVER, plan, {AT_TEN: {of.trips: 5}}, now=NOW)
    assert counts() == {("trips", "10"): 5}


def test_the_hour_in_which_the_counting_begins_is_not_known() -> None:
    """Nor what was before it: an earlier version has captured, and has not counted. A capture that comes later has its own beginning."""
    of = Counted()
    plan = captures_by_server()[SERVER]
    keep_stored_counts(SERVER, plan, None, now=TEN + MINUTE)
    capture = Capture.objects.get(topic=of.trips)
    assert [source_hours.messages_of(capture, TEN + n * HOUR) for n in (-1, 0, 1)] == [None, None, 0]
    keep_stored_counts(SERVER, plan, {}, now=TEN + 3 * HOUR)
    capture.refresh_from_db()
    assert capture.counted_since == TEN + MINUTE
    keep_stored_counts(SERVER, plan, None, now=TEN + 3 * HOUR)
    assert set(Capture.objects.values_list("counted_since", flat=True)) == {TEN + 3 * HOUR}


def test_an_hour_of_two_servers_is_their_sum() -> None:
    """A capture that has gone on at another server."""
    of = Counted()
    Capture.objects.update(counted_since=TEN - DAY)
    for server, messages in (("former:3306", 4), (SERVER, 3)):
        source_hours.keep_counts(server, {AT_TEN: {of.trips: messages}, AT_ELEVEN: {of.trips: messages or None}})
    source_hours.keep_counts(SERVER, {AT_ELEVEN: {of.trips: None}})
    capture = Capture.objects.get(topic=of.trips)
    assert [source_hours.messages_of(capture, TEN + n * HOUR) for n in (0, 1)] == [7, None]


# By the copy


@pytest.fixture
def copy(copy: DatasetCopy, settings: Any, tmp_path: Path) -> DatasetCopy:
    """flights, captured and counted."""
    capture_flights(copy, settings, tmp_path / "log", counted_since=TEN - DAY)
    TapServer.objects.create(address=SERVER, seen_at=TEN + DAY)
    return copy


def writer(copy: DatasetCopy, settings: Any, minutes: int) -> ChangelogWriter:
    at = TEN + minutes * MINUTE
    config = ChangelogConfig(settings.LAKEHUB_CHANGELOG_URL, 90 * 86_400, lambda: at)
    return CHANGELOGS.get("segments")(config).writer("tap")


def log(copy: DatasetCopy, settings: Any, *messages: bytes) -> None:
    """At five past ten; the copy has read all of them."""
    topic = topic_of(copy.dataset)
    writer(copy, settings, 5).commit([Outgoing(topic, b"k", message) for message in messages], {})
    writer(copy, settings, 200).commit([Outgoing(topic, b"k", b"later")], {})
    load(copy)
    commit(copy, 250, len(messages) + 1, {"10": len(messages), "13": 1})


def tapped(copy: DatasetCopy, at_ten: int | None) -> None:
    topic = topic_of(copy.dataset)
    source_hours.keep_counts(SERVER, {AT_TEN: {topic: at_ten}, "2026-11-17T13": {topic: 1}})


def count(*, minutes: int = 255) -> int:
    return audit.count_due_hours(now=TEN + minutes * MINUTE, has_time=lambda: True)


def hour(start: datetime = TEN) -> tuple[int | None, int | None, int]:
    return CaptureHour.objects.values_list("source", "logged", "read").get(start=start)


def finding() -> str | None:
    raised = Finding.objects.filter(kind="messages_unaccounted", cleared_at=None).first()
    return None if raised is None else raised.detail["message"]


@pytest.mark.parametrize("at_source", [3, 4, 2])
def test_what_the_source_has_and_the_log_lacks_is_a_finding(copy: DatasetCopy, settings: Any, at_source: int) -> None:
    """Or what the log has twice; although the commits have read all that the log has."""
    log(copy, settings, b"1", b"2", b"3")
    tapped(copy, at_source)
    assert count() == 4
    assert hour() == (at_source, 3, 3)
    message = finding()
    assert (message is None) == (at_source == 3)
    assert message is None or f"2026-11-17 10:00 UTC: {at_source} at the source, 3 logged. " in message
    assert message is None or "have read" not in message


def test_a_source_that_nobody_knows_of_is_no_difference(copy: DatasetCopy, settings: Any) -> None:
    log(copy, settings, b"1", b"2")
    tapped(copy, None)
    count()
    assert (hour(), finding()) == ((None, 2, 2), None)


def test_both_differences_are_told(copy: DatasetCopy, settings: Any) -> None:
    log(copy, settings, b"1", b"2")
    tapped(copy, 3)
    CaptureHour.objects.filter(start=TEN).update(read=1)
    count()
    assert "3 at the source, 2 logged" in (finding() or "")
    assert "2 logged, 1 read" in (finding() or "")


def test_what_was_mended_and_published_again_is_not_missed_at_the_source(copy: DatasetCopy, settings: Any) -> None:
    """Its name in the text of a row makes it none of these."""
    avro = json.dumps(subject_schema().avro)
    team = copy.dataset.team
    kept = registry.register(topic_of(copy.dataset), avro, team=team, actor="tap", now=NOW, is_captured=True)
    schema = subject_schema_of(kept)
    mended = Encoder(schema, ("id",), MENDED_SOURCE, "", lambda: NOW).encode(change(), mended=Mended("why", b"raw"))
    own = Encoder(schema, ("id",), "mysql://db", "", lambda: NOW).encode(change({**TRIP, "city": MENDED_SOURCE}))
    log(copy, settings, mended.value, own.value, MENDED_SOURCE.encode())
    tapped(copy, 2)
    count()
    assert (hour(), finding()) == ((3, 3, 3), None)


def test_an_hour_waits_until_the_tap_has_told_of_it(copy: DatasetCopy, settings: Any) -> None:
    """A process that was killed may have counted what it has not told. After a day nobody waits any more, nor for one that is stopped."""
    log(copy, settings, b"1", b"2")
    TapServer.objects.update(seen_at=TEN + 59 * MINUTE)
    assert count() == 0
    tapped(copy, 2)
    TapServer.objects.update(seen_at=TEN + HOUR)
    assert count() == 1
    assert hour() == (2, 2, 2)
    assert count(minutes=24 * 60 + 121) == 1
    assert hour(TEN + HOUR) == (None, 0, 0)
    Capture.objects.update(stopped_load=1)
    assert count() == 2
    assert hour(TEN + 3 * HOUR) == (None, 1, 1)
    assert finding() is None


class DatabaseLog(Log):
    """Also in the changelog that the audit counts."""

    writer: ChangelogWriter
    topic: str

    def commit(self, messages: Sequence[Outgoing], position: Any, at: datetime | None = None) -> None:
        super().commit(messages, position, at)
        self.writer.commit(messages, position, at)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_message_that_the_tap_drops_is_a_finding(
    copy: DatasetCopy, settings: Any, monkeypatch: pytest.MonkeyPatch, *, is_broken: bool
) -> None:
    """From the rows of the binlog to the finding: broken on purpose, between the count of the row and the commit of its message."""
    encoded = EncodedTable.messages

    def dropping(*args: Any) -> Iterator[Any]:
        return iter([]) if args[-1].after["id"] == 2 else encoded(*args)

    if is_broken:
        monkeypatch.setattr(EncodedTable, "messages", dropping)
    topic = topic_of(copy.dataset)
    binlog: list[tuple[BinlogEvent, ...]] = [transaction(n, inserted(TRIPS, row(n))) for n in (1, 2, 3)]
    tapping = Tapping(Server(binlog), log=DatabaseLog())
    tapping.log.writer = writer(copy, settings, 5)  # type: ignore[attr-defined]
    tapping.clock = lambda: TEN + 5 * MINUTE  # type: ignore[method-assign]
    tapping.run([CaptureSpec(topic, "shop", "trips")])
    keep_stored_counts(SERVER, [], (tapping.log.stored or {})["counts"], now=NOW)
    read = len(tapping.log.messages)
    load(copy)
    commit(copy, 250, read, {"10": read})
    count()
    assert hour() == (3, 3 - is_broken, 3 - is_broken)
    assert ("3 at the source, 2 logged" in (finding() or "")) == is_broken


def test_the_api_has_what_the_source_had(copy: DatasetCopy, settings: Any, client: Client) -> None:
    log(copy, settings, b"1", b"2", b"3")
    tapped(copy, 4)
    count()
    client.force_login(given.user("guest"))
    results = client.get("/api/v1/datasets/flights/capture-hours").json()["results"]
    assert [
        (each["at_source"], each["logged"], each["read"]) for each in results if each["start"].startswith(AT_TEN)
    ] == [(4, 3, 3)]


def test_hours_are_kept_for_ninety_days_and_found_by_an_index(copy: DatasetCopy) -> None:
    capture = Capture.objects.get()
    for days in (89, 91):
        SourceHour.objects.create(capture=capture, server=SERVER, start=NOW - days * DAY, messages=1)
    assert retention.delete_old_capture_hours(now=NOW) == 1
    (plan,) = plans_of(lambda: list(SourceHour.objects.filter(capture=capture, start=TEN)))
    assert re.search(r"source_hour_once|sqlite_autoindex_ingestion_sourcehour", plan)
    assert "capture_id=?" in plan
