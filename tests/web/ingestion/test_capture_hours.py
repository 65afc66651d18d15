"""By the hour: how long changes took to the lake, and whether the commits of a copy have read all that the log has."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ingestion import tasks
from ingestion.captures.records import topic_of
from ingestion.changelog import CHANGELOGS, ChangelogConfig, Outgoing
from ingestion.domain.following import FollowSums
from ingestion.domain.lag import LagCounts
from ingestion.lake.captured import hours
from ingestion.lake.commits import record_new_commits
from ingestion.models import Capture, CaptureHour, Finding, JobRun, JobState, TapServer
from ingestion.positions import audit, behind
from ingestion.runs import retention
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.query_plans import plans_of
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.captured_flights import capture_flights

pytestmark = pytest.mark.django_db
TEN = datetime.fromisoformat("2026-11-17T10:00:00+00:00")
assert NOW > TEN + 4 * HOUR


@pytest.fixture
def copy(copy: DatasetCopy, settings: Any, tmp_path: Path) -> DatasetCopy:
    """flights, captured, whose log has 3 messages of 10 o'clock, 2 of 11 o'clock, none of 12, and one later."""
    capture_flights(copy, settings, tmp_path / "log")
    for minutes, messages in ((5, 3), (65, 2), (190, 1)):
        at = TEN + minutes * MINUTE
        config = ChangelogConfig(settings.LAKEHUB_CHANGELOG_URL, 90 * 86_400, lambda at=at: at)  # type: ignore[misc]
        log = CHANGELOGS.get("segments")(config)
        log.writer("tap").commit([Outgoing(topic_of(copy.dataset), b"k", b"event")] * messages, {})
    return copy


def commit(
    copy: DatasetCopy,
    minute: int,
    offset: int,
    read: dict[str, int],
    *,
    loaded_at: datetime | None = None,
    **facts: Any,
) -> None:
    """At so many minutes after ten; `read`: by hour."""
    at = TEN + minute * MINUTE
    checkpoint = {"log": {topic_of(copy.dataset): {"0": offset}}, "load": 1, "loaded_from": {}}
    checkpoint |= {"loaded_at": loaded_at.isoformat()} if loaded_at else {}
    told_by = hudi_timeline.told_by(
        "",
        read=sum(read.values()),
        applied=sum(read.values()),
        logged_hours={f"2026-11-17T{hour}": n for hour, n in read.items()},
        **facts,
    )
    hudi_timeline.commit(copy, f"{at:%Y%m%d%H%M%S}000", {}, run=told_by, checkpoint=checkpoint)
    record_new_commits(copy, now=NOW)


def load(copy: DatasetCopy, minute: int = -40) -> None:
    commit(copy, minute, 0, {}, kind="bootstrap")


def count() -> int:
    """At a quarter past two, when four hours are over."""
    return audit.count_due_hours(now=TEN + 255 * MINUTE, has_time=lambda: True)


def hour(start: datetime) -> CaptureHour:
    return CaptureHour.objects.get(start=start)


def test_a_commit_is_counted_once_by_the_hours_of_its_messages(copy: DatasetCopy) -> None:
    commit(copy, 70, 4, {"10": 3, "11": 1})
    record_new_commits(copy, now=NOW)
    commit(copy, 75, 5, {"11": 1})
    assert [*CaptureHour.objects.order_by("start").values_list("start", "read")] == [(TEN, 3), (TEN + HOUR, 2)]


def test_how_long_changes_took_is_of_the_hour_in_which_they_came(copy: DatasetCopy) -> None:
    late = [int((TEN - HOUR).timestamp())] * 21
    recent = [int((TEN + 70 * MINUTE).timestamp()) - 3] * 21
    commit(copy, 70, 3, {"10": 3}, source_times=recent)
    commit(copy, 71, 4, {"10": 1}, source_times=late)
    lags = LagCounts.from_json(hour(TEN + HOUR).lags)
    assert lags.events == 4
    assert (lags.quantile(0.5), lags.quantile(1.0)) > (timedelta(seconds=3), 2 * HOUR)
    assert hour(TEN).lags == {}


def test_what_adds_up_is_no_finding(copy: DatasetCopy) -> None:
    load(copy)
    commit(copy, 200, 6, {"10": 3, "11": 2, "13": 1})
    assert count() == 4
    assert [*CaptureHour.objects.order_by("start").values_list("read", "logged", "is_partial")] == [
        (0, None, True),
        (3, 3, False),
        (2, 2, False),
        (0, 0, False),
        (1, 1, False),
    ]
    assert not Finding.objects.exists()
    assert count() == 0


@pytest.mark.parametrize("read", [{"10": 3, "11": 1, "13": 1}, {"10": 3, "13": 1}, {"10": 3, "11": 4, "13": 1}])
def test_a_difference_is_told_with_the_hour(copy: DatasetCopy, read: dict[str, int]) -> None:
    """Also where the commits have read nothing of the hour at all."""
    load(copy)
    commit(copy, 200, 6, read)
    count()
    finding = Finding.objects.get(kind="messages_unaccounted", cleared_at=None)
    assert f"2026-11-17 11:00 UTC: 2 logged, {read.get('11', 0)} read" in finding.detail["message"]
    assert finding.detail["hours"] == [[(TEN + HOUR).isoformat(), 2, read.get("11", 0), None]]


def test_an_hour_is_counted_when_the_copy_has_read_on_from_it(copy: DatasetCopy) -> None:
    """What still waits is no difference."""
    load(copy)
    commit(copy, 75, 4, {"10": 3, "11": 1})
    assert count() == 1
    assert (hour(TEN).logged, hour(TEN + HOUR).logged) == (3, None)
    commit(copy, 200, 6, {"11": 1, "13": 1})
    assert count() == 3
    assert not Finding.objects.exists()


def test_hours_in_which_a_copy_was_loaded_are_not_compared(copy: DatasetCopy) -> None:
    load(copy, 70)
    commit(copy, 200, 6, {"11": 1, "13": 1})
    assert count() == 2
    assert (hour(TEN + HOUR).is_partial, hour(TEN + HOUR).logged) == (True, None)
    assert not Finding.objects.exists()


def test_nor_are_those_in_which_a_long_load_was_at_work(copy: DatasetCopy) -> None:
    """It has read the rest of its first hour, and that late; a message of the hour before may have come after its beginning."""
    commit(copy, 130, 2, {}, kind="bootstrap", loaded_at=TEN + timedelta(seconds=20))
    commit(copy, 200, 6, {"10": 1, "11": 2, "13": 1})
    assert [*CaptureHour.objects.filter(is_partial=True).order_by("start").values_list("start", flat=True)] == [
        TEN + number * HOUR for number in (-1, 0, 1, 2)
    ]
    assert count() == 1
    assert not Finding.objects.exists()


def test_what_is_read_again_is_counted_anew(copy: DatasetCopy) -> None:
    load(copy)
    commit(copy, 200, 6, {"10": 3, "11": 1, "13": 1})
    count()
    assert Finding.objects.filter(kind="messages_unaccounted", cleared_at=None).exists()
    moved = {"from_at": (TEN + 5 * MINUTE).isoformat(), "upto_at": None, "skipped": 0, "read_again": 6}
    commit(copy, 210, 0, {}, log_move=moved)
    commit(copy, 220, 6, {"10": 3, "11": 2, "13": 1})
    count()
    assert (hour(TEN).is_partial, hour(TEN + HOUR).read, hour(TEN + HOUR).logged) == (True, 2, 2)
    assert not Finding.objects.filter(kind="messages_unaccounted", cleared_at=None).exists()


def test_what_was_left_out_is_told_by_its_own_finding_alone(copy: DatasetCopy) -> None:
    load(copy)
    commit(copy, 15, 3, {"10": 3})
    moved = {
        "from_at": (TEN + 65 * MINUTE).isoformat(),
        "upto_at": (TEN + 190 * MINUTE).isoformat(),
        "skipped": 2,
        "read_again": 0,
    }
    commit(copy, 195, 5, {}, log_move=moved)
    commit(copy, 200, 6, {"13": 1})
    assert count() == 1
    assert [*Finding.objects.filter(cleared_at=None).values_list("kind", flat=True)] == ["changes_skipped"]


def test_a_log_that_cannot_be_read_is_counted_later(copy: DatasetCopy, tmp_path: Path) -> None:
    load(copy)
    commit(copy, 200, 6, {"10": 3, "11": 2, "13": 1})
    (tmp_path / "log" / "marks.json").rename(tmp_path / "away")
    assert count() == 0
    (tmp_path / "away").rename(tmp_path / "log" / "marks.json")
    assert count() == 4


def test_what_the_log_does_not_keep_any_more_is_not_counted(copy: DatasetCopy, settings: Any) -> None:
    settings.LAKEHUB_CHANGELOG_DAYS = 0
    load(copy)
    commit(copy, 200, 6, {"10": 2, "11": 2, "13": 1})
    count()
    assert hour(TEN).is_partial
    assert not Finding.objects.exists()


def test_rows_are_bounded_and_found_by_an_index(copy: DatasetCopy) -> None:
    CaptureHour.objects.create(copy=copy, start=NOW - hours.KEPT - HOUR)
    CaptureHour.objects.create(copy=copy, start=NOW - hours.KEPT + HOUR)
    assert retention.delete_old_capture_hours(now=NOW) == 1
    commit(copy, 70, 3, {"10": 3})
    CaptureHour.objects.all().delete()
    hours._add_read(copy, {"2020-01-01T00": 3, "2026-11-17T10": 1}, now=NOW)
    assert CaptureHour.objects.count() == 1
    (plan,) = plans_of(lambda: list(audit.uncounted_hours(now=NOW)))
    assert "capture_hour_uncounted" in plan


def test_the_api_has_the_hours_newest_first(client: Client, copy: DatasetCopy) -> None:
    recent = [int((TEN + 70 * MINUTE).timestamp()) - 2] * 21
    load(copy)
    commit(copy, 70, 3, {"10": 3}, source_times=recent)
    client.force_login(given.user("guest"))
    (eleven, ten, nine) = client.get("/api/v1/datasets/flights/capture-hours").json()["results"]
    assert (eleven["changes"], eleven["lag_p50_s"], eleven["lag_p95_s"], eleven["read"]) == (3, 2.8, 2.8, 0)
    assert (ten["changes"], ten["lag_p50_s"], ten["read"], ten["logged"]) == (0, None, 3, None)
    assert (nine["is_partial"], nine["data_center"]) == (True, "dc1")


def test_the_task_does_both(copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    load(copy)
    commit(copy, 200, 6, {"10": 3, "11": 1, "13": 1})
    monkeypatch.setattr("lakehub.wiring.clock.now", lambda: TEN + 255 * MINUTE)
    followed(copy, TEN - 30 * DAY)
    tasks.check_captured_copies()
    assert {*Finding.objects.values_list("kind", flat=True)} == {"messages_unaccounted", "copy_behind"}


def followed(copy: DatasetCopy, upto: datetime) -> None:
    sums = FollowSums(looks=1, looked_at=upto).to_json()
    JobRun.objects.all().delete()
    JobRun.objects.create(copy=copy, kind="follow", due_at=NOW, state=JobState.RUNNING, progress=sums)
    TapServer.objects.update_or_create(address="db:3306", defaults={"caught_up_at": upto})


def is_behind() -> bool:
    behind.judge_lags(now=NOW)
    return Finding.objects.filter(kind="copy_behind", cleared_at=None).exists()


def test_a_copy_is_behind_for_longer_than_its_tier_allows(copy: DatasetCopy) -> None:
    """It is not cleared before it is well below that: a copy at the limit raises one finding."""
    copy.dataset.tier, limit = 0, HOUR
    copy.dataset.save()
    assert not is_behind()
    followed(copy, NOW - limit)
    assert not is_behind()
    followed(copy, NOW - limit - MINUTE)
    assert is_behind()
    message = Finding.objects.get().detail["message"]
    assert "behind for 1 h 1 min, and its tier allows 1 h 0 min" in message
    followed(copy, NOW - limit + 10 * MINUTE)
    assert is_behind()
    followed(copy, NOW - limit / 2)
    assert not is_behind()
    assert Finding.objects.count() == 1


def test_a_dataset_may_have_a_limit_of_its_own(copy: DatasetCopy) -> None:
    copy.dataset.freshness_sla = 3 * DAY
    copy.dataset.save()
    followed(copy, NOW - 2 * DAY)
    assert not is_behind()


def test_a_copy_that_lacks_changes_has_a_finding_of_its_own(copy: DatasetCopy) -> None:
    followed(copy, NOW - 30 * DAY)
    assert is_behind()
    Capture.objects.update(incomplete_copies=[copy.pk])
    assert not is_behind()
