"""After a clock that was ahead was set back nothing waits for the time that was wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError

from incidents.models import Incident, Message, MessageState
from ingestion.captures.reach import captured_upto
from ingestion.captures.states import note_captured
from ingestion.models import Commit, CopyLease, JobKind, JobRun, JobState, TapServer
from ingestion.runs import feed_schedule
from ingestion.runs.leases import LEASE_DURATION
from lakehub.accounts.models import BrowserSession, PasswordResetRequest, SignInTries
from lakehub.clock.models import LatestInstant
from lakehub.clock.set_back import ClockWatch, note_time
from lakehub.kernel.interval import EVERYTHING
from quality.models import Unit
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.web.ingestion.captures.taps import captured

pytestmark = pytest.mark.django_db

AHEAD = NOW + DAY


@pytest.fixture(autouse=True)
def was_ahead() -> None:
    assert note_time(now=AHEAD) == timedelta()


def test_a_clock_that_goes_on_changes_nothing() -> None:
    test = make.quality_test(make.dataset("flights"))
    unit = make.unit(test, due_at=AHEAD + HOUR)
    assert note_time(now=AHEAD + MINUTE) == timedelta()
    assert note_time(now=AHEAD + MINUTE - timedelta(seconds=5)) == timedelta(), "adjusted"
    unit.refresh_from_db()
    assert unit.due_at == AHEAD + HOUR
    assert LatestInstant.objects.get().at == AHEAD + MINUTE


def test_it_is_noticed_once_and_by_how_much() -> None:
    assert note_time(now=NOW) == DAY
    assert note_time(now=NOW + timedelta(seconds=1)) == timedelta()


def test_what_the_clock_was_expected_to_show_counts_where_the_note_is_older() -> None:
    """The note is of before the jump forth, as one between two notes, or one that the database could not be told of."""
    unit = make.unit(make.quality_test(make.dataset("flights")), due_at=AHEAD + DAY + HOUR, latest_at=AHEAD + DAY)
    after = AHEAD + timedelta(seconds=40)
    assert note_time(now=after, expected=after + DAY) == DAY
    unit.refresh_from_db()
    assert unit.due_at == after
    assert LatestInstant.objects.get().at == after


class Clocks:
    """Of a machine whose time is set by hand; `watch` looks once a second."""

    def __init__(self) -> None:
        self.wall, self.uptime = AHEAD, 100.0
        self.watch = ClockWatch(now=lambda: self.wall, monotonic=lambda: self.uptime)

    def go_on(self, seconds: int, by: timedelta = timedelta()) -> timedelta:
        """Set by so much, then on at its pace: by how much it was found to be set back."""
        self.wall += by
        set_back = timedelta()
        for _ in range(seconds):
            self.uptime += 1
            self.wall += timedelta(seconds=1)
            set_back += self.watch.look()
        return set_back


def test_a_jump_forth_is_noted_at_once() -> None:
    clocks = Clocks()
    clocks.go_on(5)
    clocks.go_on(1, by=DAY)
    assert LatestInstant.objects.get().at == clocks.wall


@pytest.mark.parametrize("seconds", [1, 39, 59, 61, 150])
@pytest.mark.parametrize("jump", [timedelta(seconds=30), 6 * HOUR], ids=["seconds", "hours"])
def test_a_clock_that_was_ahead_for_a_short_time_is_noticed_once_and_by_how_much(seconds: int, jump: timedelta) -> None:
    clocks = Clocks()
    assert clocks.go_on(5) + clocks.go_on(seconds, by=jump) == timedelta()
    assert clocks.go_on(1, by=-jump) == jump
    assert clocks.go_on(90) == timedelta()


def test_a_jump_in_small_steps_is_one_too() -> None:
    clocks = Clocks()
    clocks.go_on(5)
    for _ in range(4):
        clocks.go_on(1, by=timedelta(seconds=8))
    for _ in range(4):
        clocks.go_on(1, by=timedelta(seconds=-8))
    assert clocks.go_on(90) == timedelta()
    assert LatestInstant.objects.get().at <= clocks.wall


def test_a_clock_that_is_adjusted_or_a_machine_that_slept_changes_nothing() -> None:
    clocks = Clocks()
    set_back = clocks.go_on(5) + clocks.go_on(30, by=timedelta(seconds=5)) + clocks.go_on(100, by=timedelta(seconds=-5))
    assert set_back + clocks.go_on(100, by=DAY) == timedelta()


def test_a_jump_that_the_database_could_not_be_told_of_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    clocks.go_on(5)
    with monkeypatch.context() as away:
        away.setattr(LatestInstant.objects, "select_for_update", _database_is_away)
        with pytest.raises(OperationalError):
            clocks.go_on(1, by=DAY)
    assert clocks.go_on(1, by=-DAY) == DAY


def _database_is_away() -> None:
    raise OperationalError


@pytest.mark.parametrize(
    ("state", "times", "is_put_right"), [("40P01", 2, True), ("40P01", 3, False), ("57014", 1, False)]
)
def test_a_deadlock_with_what_others_write_is_tried_again_at_once(
    state: str, times: int, is_put_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [OperationalError("ended by the server")] * times
    problems[0].__cause__ = Ended(state)

    def put_right(**_: object) -> None:
        if problems:
            raise problems.pop()

    monkeypatch.setattr("lakehub.clock.set_back.import_string", lambda path: put_right)
    if is_put_right:
        assert note_time(now=NOW) == DAY
    else:
        with pytest.raises(OperationalError):
            note_time(now=NOW)
        assert LatestInstant.objects.get().at == AHEAD, "nothing is half done"


class Ended(Exception):
    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


def test_units_that_ran_are_due_and_partitions_that_did_not_wait_for_their_time() -> None:
    dataset = make.dataset("flights")
    test, whole = make.quality_test(dataset), make.quality_test(dataset, cadence=HOUR)
    day = make.day("2026-11-18")
    future = make.unit(test, over=day, due_at=day.end + HOUR, latest_at=None, last_pass_at=None)
    ran = make.unit(test, over=make.day("2026-11-16"), due_at=AHEAD + HOUR, latest_at=AHEAD, last_pass_at=AHEAD)
    cadence = make.unit(whole, over=EVERYTHING, due_at=AHEAD + HOUR, latest_at=None, last_pass_at=None)
    note_time(now=NOW)
    due = dict(Unit.objects.values_list("pk", "due_at"))
    assert due == {future.pk: day.end + HOUR, ran.pk: NOW, cadence.pk: NOW}
    assert Unit.objects.get(pk=ran.pk).last_pass_at == NOW


def test_a_feed_goes_on() -> None:
    dataset = make.dataset("flights", ingested=True)
    make.feed(dataset, every=MINUTE)
    copy = make.copy_of(dataset)
    for kind, state in ((JobKind.BOOTSTRAP, JobState.SUCCEEDED), (JobKind.FOLLOW, JobState.FAILED)):
        JobRun.objects.create(copy=copy, kind=kind, state=state, due_at=AHEAD, started_at=AHEAD, ended_at=AHEAD)
    assert feed_schedule.next_request_at(now=NOW) == NOW, "also before it was noticed"
    note_time(now=NOW)
    assert feed_schedule.next_request_at(now=NOW) == NOW + MINUTE
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW + MINUTE)] == [JobKind.FOLLOW]


def test_whoever_waits_to_sign_in_waits_as_long_as_was_meant_and_no_session_lasts_longer() -> None:
    SignInTries.objects.create(key="k", failures=9, last_at=AHEAD, locked_until=AHEAD + MINUTE)
    BrowserSession.objects.create(digest="d", begun_at=AHEAD, last_seen_at=AHEAD, data="")
    PasswordResetRequest.objects.create(email="ann@example.org", at=AHEAD, claimed_at=AHEAD)
    note_time(now=NOW)
    tries, session, reset = SignInTries.objects.get(), BrowserSession.objects.get(), PasswordResetRequest.objects.get()
    assert (tries.last_at, tries.locked_until) == (NOW, NOW + MINUTE)
    assert (session.begun_at, session.last_seen_at, reset.at, reset.claimed_at) == (NOW, NOW, NOW, NOW)


def test_no_commit_is_later_than_now() -> None:
    copy = make.copy_of(make.dataset("flights"))
    Commit.objects.create(copy=copy, instant="20261231100000000", completed_at=AHEAD, operation="upsert")
    note_time(now=NOW)
    assert Commit.objects.get().completed_at == NOW


@pytest.mark.parametrize("caught_up_at", [AHEAD + MINUTE, NOW], ids=["ahead", "at the time that it is again"])
def test_a_capture_that_began_after_its_tap_had_caught_up_is_not_complete(caught_up_at: datetime) -> None:
    dataset, _ = captured("trips", "riders")
    copy = make.copy_of(dataset)
    capture, began_at = dataset.feed.capture, AHEAD + HOUR
    note_captured(capture.topic, capture.load, since="0-1-9", table="db:3306/ops.trips", columns={}, now=began_at)
    server = TapServer.objects.create(address="db:3306", caught_up_at=caught_up_at, seen_at=AHEAD)
    assert captured_upto(copy, NOW + HOUR) is None
    note_time(now=NOW)
    assert captured_upto(copy, NOW + HOUR) is None
    server.refresh_from_db()
    assert (server.caught_up_at, server.seen_at) == (None, NOW)
    TapServer.objects.update(caught_up_at=NOW + MINUTE)
    assert captured_upto(copy, NOW + HOUR) == NOW + MINUTE, "it has caught up again"


def test_when_a_tap_had_caught_up_stays_known_where_the_clock_was_right() -> None:
    TapServer.objects.create(address="db:3306", caught_up_at=NOW - HOUR)
    note_time(now=NOW)
    assert TapServer.objects.get().caught_up_at == NOW - HOUR


def test_a_run_that_is_to_be_tried_again_is() -> None:
    copy = make.copy_of(make.dataset("flights"))
    run = JobRun.objects.create(copy=copy, kind=JobKind.BOOTSTRAP, due_at=AHEAD + HOUR)
    note_time(now=NOW)
    run.refresh_from_db()
    assert run.due_at == NOW


def test_a_lease_lasts_no_longer_than_it_is_given() -> None:
    """By the database's clock, which is the real one here: a lease of tomorrow was taken by a clock that was wrong."""
    copy = make.copy_of(make.dataset("flights"))
    lease = CopyLease.objects.create(copy=copy, holder="elsewhere:1:a", until=datetime.now(UTC) + DAY)
    note_time(now=NOW)
    lease.refresh_from_db()
    assert lease.until is not None
    assert lease.until <= datetime.now(UTC) + LEASE_DURATION
    assert lease.holder == "elsewhere:1:a"


def test_messages_are_looked_at_and_escalations_wait_as_long_as_was_meant() -> None:
    incident = make.incident(make.dataset("flights"))
    held = message(incident, due_at=AHEAD + MINUTE, state=MessageState.HELD)
    tried = message(incident, due_at=AHEAD + HOUR, attempt=2)
    escalation = message(incident, due_at=NOW + 3 * HOUR)
    wrong = message(incident, due_at=AHEAD + 2 * HOUR, created_at=AHEAD)
    note_time(now=NOW)
    due = dict(Message.objects.values_list("pk", "due_at"))
    assert due == {held.pk: NOW, tried.pk: NOW, escalation.pk: NOW + 3 * HOUR, wrong.pk: NOW + 2 * HOUR}


def message(incident: Incident, **fields: object) -> Message:
    made = make.message(incident, MessageState.PENDING)
    Message.objects.filter(pk=made.pk).update(**fields)
    return made
