"""Many incidents at once, and taking it back: exactly, for a while, and never over what somebody did since."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents.lifecycle import actions, user_reports
from incidents.lifecycle.bulk.apply import BulkRequest, apply_to_many
from incidents.lifecycle.bulk.undo import undo_bulk_action
from incidents.lifecycle.intake import process_flips
from incidents.models import BulkAction, Incident, Message, Span
from incidents.notifications.sender import send_due_messages
from incidents.record import transitions
from lakehub.accounts.models import AuditEntry, Role, User
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.outcome import Outcome
from quality.models import Unit
from tests import factories
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db
LATER = NOW + 5 * MINUTE
FORCED = BulkRequest("resolve", resolution="false_positive", false_positive="wrong_sla", why="Agreed with the readers.")


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset()


@pytest.fixture
def ana() -> User:
    person = factories.user("ana")
    factories.member(person, factories.team(), Role.ON_CALL)
    return person


@pytest.fixture
def two(stage: FailingDataset) -> list[int]:
    return [stage.opened(day("2026-11-02")).pk, stage.opened().pk]


def state_of(number: int) -> dict[str, Any]:
    """All that an undo must restore: the incident without its revision, its spans, the verdicts of its units."""
    (incident,) = Incident.objects.filter(pk=number).values()
    del incident["revision"]
    spans = list(Span.objects.filter(incident=number).values().order_by("pk"))
    units = Unit.objects.filter(spans__incident=number).values("pk", "verdict", "waiver", "waived_at").order_by("pk")
    return {"incident": incident, "spans": spans, "units": list(units)}


def snooze() -> BulkRequest:
    return BulkRequest("snooze", until=NOW + 9 * HOUR)


def test_what_can_be_done_is_done_and_the_rest_is_named(two: list[int], ana: User) -> None:
    actions.acknowledge(two[0], actor=ana, now=NOW)
    elsewhere = Incident.objects.create(
        dataset=factories.dataset("other", team=factories.team("others")), category="others", opened_at=NOW
    )
    report = apply_to_many([*two, elsewhere.pk, 4711], BulkRequest("acknowledge"), actor=ana, now=NOW)
    assert report.done == [two[1]]
    kept = {skipped.incident: (skipped.code, skipped.why) for skipped in report.skipped}
    assert kept[two[0]][0] == "conflict"
    assert "ana was faster" in kept[two[0]][1]
    assert kept[elsewhere.pk] == (
        "forbidden",
        "To acknowledge here you need to be owner or on call or admin of team others.",
    )
    assert kept[4711][0] == "not_found"


@pytest.mark.parametrize("ask", [BulkRequest("acknowledge"), BulkRequest("rerun"), snooze(), FORCED])
def test_who_has_no_right_opens_no_transaction(ask: BulkRequest) -> None:
    """On SQLite each would hold up everybody who writes."""
    datasets = [factories.dataset(f"d{index}", team=factories.team(f"t{index}")) for index in range(3)]
    rows = [Incident(dataset=datasets[index % 3], category="others", opened_at=NOW) for index in range(60)]
    numbers = [incident.pk for incident in Incident.objects.bulk_create(rows)]
    viewer = factories.user("vera")
    for dataset in datasets:
        factories.member(viewer, dataset.team, Role.VIEWER)
    with CaptureQueriesContext(connection) as asked:
        report = apply_to_many([*numbers, 4711], ask, actor=viewer, now=NOW)
    statements = [query["sql"] for query in asked]
    assert len(statements) <= 3, statements
    assert all(sql.startswith("SELECT") for sql in statements), statements
    assert [(kept.incident, kept.code) for kept in report.skipped] == [
        *((number, "forbidden") for number in numbers),
        (4711, "not_found"),
    ]
    assert report.skipped[1].why.endswith("of team t1.")
    assert (report.done, report.bulk, report.undo_until) == ([], None, None)


@pytest.mark.parametrize("ask", [BulkRequest("acknowledge"), snooze(), BulkRequest("assign", assignee="ana"), FORCED])
def test_an_undo_is_the_exact_inverse(two: list[int], ana: User, ask: BulkRequest) -> None:
    before = [state_of(number) for number in two]
    report = apply_to_many(two, ask, actor=ana, now=NOW)
    assert report.done == two
    assert report.bulk is not None
    assert [state_of(number) for number in two] != before
    assert undo_bulk_action(report.bulk.pk, actor=ana, now=LATER).done == two
    process_flips(now=LATER)
    assert [state_of(number) for number in two] == before
    assert AuditEntry.objects.filter(actor="ana", subject__in=[f"incident:{number}" for number in two]).count() == 4


def test_what_was_acknowledged_before_it_was_resolved_is_acknowledged_again(two: list[int], ana: User) -> None:
    actions.acknowledge(two[0], actor=ana, now=NOW)
    before = state_of(two[0])
    report = apply_to_many(two[:1], FORCED, actor=ana, now=NOW + MINUTE)
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    assert state_of(two[0]) == before


def test_what_was_snoozed_before_it_was_resolved_is_snoozed_again(two: list[int], ana: User) -> None:
    """Only that it is open again is told all the same, to whom its end was."""
    Message.objects.update(state="sent")
    actions.snooze(two[0], None, until_worse=True, actor=ana, now=NOW)
    before = state_of(two[0])
    report = apply_to_many(two[:1], FORCED, actor=ana, now=NOW + MINUTE)
    send_due_messages(now=NOW + MINUTE)
    assert Incident.objects.get(pk=two[0]).snoozed_until is None
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    assert state_of(two[0]) == before
    send_due_messages(now=LATER)
    messages = Message.objects.filter(incident=two[0]).order_by("pk")
    assert list(messages.values_list("occasion", "state")) == [
        ("opened", "sent"),
        ("resolved", "sent"),
        ("reopened", "sent"),
    ]


def test_what_somebody_changed_since_stays(two: list[int], ana: User) -> None:
    report = apply_to_many(two, snooze(), actor=ana, now=NOW)
    assert report.bulk is not None
    actions.annotate(two[0], {"backfill": "needed"}, actor=ana, now=NOW + MINUTE)
    undone = undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    assert (undone.done, undone.skipped[0].code) == ([two[1]], "conflict")
    assert "is not as you saw it" in undone.skipped[0].why
    assert Incident.objects.get(pk=two[0]).snoozed_until == NOW + 9 * HOUR


def test_what_passed_since_stays_resolved(stage: FailingDataset, two: list[int], ana: User) -> None:
    report = apply_to_many(two, FORCED, actor=ana, now=NOW)
    assert report.bulk is not None
    stage.passes(Unit.objects.get(start=BAD_DAY.start), at=NOW + MINUTE)
    undone = undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    assert undone.done == [two[0]]
    assert "Nothing of #" in undone.skipped[0].why


def test_an_undo_is_possible_once_for_ten_minutes_by_who_did_it(two: list[int], ana: User) -> None:
    bulk, other = (apply_to_many([number], snooze(), actor=ana, now=NOW).bulk for number in two)
    assert bulk is not None
    assert other is not None
    with pytest.raises(NotFound, match="of yours"):
        undo_bulk_action(bulk.pk, actor=factories.user("ben"), now=LATER)
    with pytest.raises(Conflict, match=r"too late to undo: that was possible until 2026-11-17 19:42 UTC"):
        undo_bulk_action(bulk.pk, actor=ana, now=NOW + timedelta(minutes=10))
    undo_bulk_action(other.pk, actor=ana, now=NOW + timedelta(minutes=9, seconds=59))
    with pytest.raises(Conflict, match="taken back already"):
        undo_bulk_action(other.pk, actor=ana, now=LATER)


def test_an_undo_that_broke_off_goes_on_with_the_rest(
    two: list[int], ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = apply_to_many(two, snooze(), actor=ana, now=NOW).bulk
    assert bulk is not None
    whole = transitions.add_event

    def killed(incident: Incident, *args: Any, **kwargs: Any) -> object:
        if incident.pk == two[1]:
            raise SystemExit("no time left")
        return whole(incident, *args, **kwargs)

    monkeypatch.setattr(transitions, "add_event", killed)
    with pytest.raises(SystemExit):
        undo_bulk_action(bulk.pk, actor=ana, now=LATER)
    monkeypatch.undo()
    assert undo_bulk_action(bulk.pk, actor=ana, now=LATER).done == [two[1]]
    assert not Incident.objects.exclude(snoozed_until=None).exists()
    with pytest.raises(Conflict, match="taken back already"):
        undo_bulk_action(bulk.pk, actor=ana, now=LATER)


def test_what_could_not_be_taken_back_is_named_again(two: list[int], ana: User) -> None:
    bulk = apply_to_many(two, snooze(), actor=ana, now=NOW).bulk
    assert bulk is not None
    actions.annotate(two[0], {"backfill": "needed"}, actor=ana, now=NOW + MINUTE)
    undo_bulk_action(bulk.pk, actor=ana, now=LATER)
    again = undo_bulk_action(bulk.pk, actor=ana, now=LATER)
    assert (again.done, [skipped.incident for skipped in again.skipped]) == ([], [two[0]])


def test_who_has_left_the_team_takes_nothing_back(two: list[int], ana: User) -> None:
    report = apply_to_many(two, snooze(), actor=ana, now=NOW)
    assert report.bulk is not None
    ana.memberships.all().delete()
    assert {skipped.code for skipped in undo_bulk_action(report.bulk.pk, actor=ana, now=LATER).skipped} == {"forbidden"}
    assert Incident.objects.filter(snoozed_until=None).count() == 0


def test_a_snooze_of_many_says_until_when(two: list[int], ana: User) -> None:
    apply_to_many(two, BulkRequest("snooze", failures=3), actor=ana, now=NOW)
    with pytest.raises(Refused, match="Say until when"):
        apply_to_many(two, BulkRequest("snooze"), actor=ana, now=NOW + MINUTE)
    assert set(Incident.objects.values_list("snoozed_failures", flat=True)) == {3}


def test_the_snoozes_of_many_are_ended_and_that_is_taken_back(two: list[int], ana: User) -> None:
    apply_to_many(two[:1], snooze(), actor=ana, now=NOW)
    before = state_of(two[0])
    report = apply_to_many(two, BulkRequest("wake"), actor=ana, now=NOW + MINUTE)
    assert (report.done, [skipped.why for skipped in report.skipped]) == (two[:1], [f"#{two[1]} is not snoozed."])
    assert Incident.objects.get(pk=two[0]).snoozed_until is None
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    assert state_of(two[0]) == before


def test_a_rerun_has_no_undo_and_nothing_done_leaves_none(two: list[int], ana: User) -> None:
    assert apply_to_many(two, BulkRequest("rerun"), actor=ana, now=NOW).bulk is None
    assert apply_to_many([4711], BulkRequest("acknowledge"), actor=ana, now=NOW).bulk is None
    assert not BulkAction.objects.exists()


def test_nobody_hears_of_what_was_undone_before_it_was_told(two: list[int], ana: User) -> None:
    Message.objects.filter(occasion="opened").update(state="sent")
    report = apply_to_many(two, FORCED, actor=ana, now=NOW)
    Message.objects.filter(occasion="resolved", incident=two[0]).update(state="sent")
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    messages = {
        number: list(Message.objects.filter(incident=number).order_by("pk").values_list("occasion", "state"))
        for number in two
    }
    assert messages[two[0]] == [("opened", "sent"), ("resolved", "sent"), ("reopened", "pending")]
    assert messages[two[1]] == [("opened", "sent"), ("resolved", "dropped")]


def test_an_undone_acknowledgement_of_a_report_asks_the_producer_again(stage: FailingDataset, ana: User) -> None:
    reported = user_reports.file_report(stage.dataset, "others", BAD_DAY, text="Odd.", reporter=ana, now=NOW)
    report = apply_to_many([reported.pk], BulkRequest("acknowledge"), actor=ana, now=NOW)
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    reported.refresh_from_db()
    reported.report.refresh_from_db()
    assert (reported.state, reported.assignee) == ("waiting", None)
    assert reported.report.remind_at is not None


def test_a_failure_after_the_undo_is_not_news(stage: FailingDataset, two: list[int], ana: User) -> None:
    report = apply_to_many(two, FORCED, actor=ana, now=NOW)
    process_flips(now=NOW)
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=LATER)
    process_flips(now=LATER)
    stage.see(Unit.objects.get(start=BAD_DAY.start), Outcome.FAIL, at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    assert Incident.objects.count() == 2
    assert Span.objects.filter(ended_at=None).count() == 2


def test_what_is_asked_for_is_checked_before_anything_is_done(two: list[int], ana: User) -> None:
    with pytest.raises(Refused, match=r"no action `acknowlege` on many incidents. Did you mean `acknowledge`"):
        apply_to_many(two, BulkRequest("acknowlege"), actor=ana, now=NOW)
    with pytest.raises(Refused, match="201 incidents are too many"):
        apply_to_many(range(1, 202), BulkRequest("rerun"), actor=ana, now=NOW)
    with pytest.raises(Refused, match="at least one"):
        apply_to_many([], BulkRequest("rerun"), actor=ana, now=NOW)
