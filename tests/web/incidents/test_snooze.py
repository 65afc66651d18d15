"""A snooze holds messages until a time, until it gets worse, or for so many more failures; getting worse is told."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.core import mail
from django.db.models.functions import Now
from django.test import Client

from incidents.lifecycle import actions, snoozes
from incidents.lifecycle.intake import process_flips
from incidents.lifecycle.resolution import close_offboarded
from incidents.models import Incident, IncidentEvent, Message
from incidents.notifications import outbox, sender
from incidents.notifications.outbox import MessageContent, RenderedMessage
from incidents.notifications.sender import send_due_messages
from incidents.record import snooze
from lakehub.accounts.models import Role, Team, User
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Outcome
from quality.models import Category
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db

TWO_DAYS_BEFORE = day("2026-11-14")


@pytest.fixture
def stage() -> FailingDataset:
    made = FailingDataset()
    Team.objects.update(email="ops@example.org")
    return made


@pytest.fixture
def ana() -> User:
    return factories.user("ana")


def tell(at: datetime) -> None:
    process_flips(now=at)
    snoozes.end_due_snoozes(now=at)
    send_due_messages(now=at)


def subjects() -> list[str]:
    return [message.subject.split("]")[0] + "]" for message in mail.outbox]


def opened(stage: FailingDataset) -> Incident:
    """An incident that the team was told of."""
    incident = stage.opened()
    tell(NOW)
    assert subjects() == ["[opened]"]
    return incident


# Worse


def test_more_data_that_fails_is_told_as_worse(stage: FailingDataset) -> None:
    incident = opened(stage)
    stage.fails(DAY_BEFORE, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]", "[worse]"]
    assert IncidentEvent.objects.get(kind="worse").text == "more data fails: dc2: 2026-11-15"
    assert incident.messages.count() == 2


def test_another_copy_that_fails_is_worse_and_another_test_of_the_same_data_is_not(stage: FailingDataset) -> None:
    opened(stage)
    same = factories.unit(
        factories.test(stage.dataset, Category.CONSISTENCY), factories.copy_of(stage.dataset, "dc2"), BAD_DAY
    )
    stage.see(same, Outcome.FAIL, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]"]
    stage.fails(where="dc1", at=NOW + 2 * HOUR)
    tell(NOW + 2 * HOUR)
    assert subjects() == ["[opened]", "[worse]"]


def test_data_that_fails_in_place_of_other_data_is_not_worse(stage: FailingDataset) -> None:
    incident = opened(stage)
    unit = incident.spans.get().unit
    stage.fails(DAY_BEFORE, at=NOW + HOUR)
    stage.passes(unit, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]"]


def test_what_only_warns_is_not_worse(stage: FailingDataset) -> None:
    opened(stage)
    stage.sustain = 2 * HOUR
    stage.fails(DAY_BEFORE, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]"]


def test_a_storm_is_two_messages(stage: FailingDataset) -> None:
    """What gets worse within five minutes of what was told is gathered."""
    opened(stage)
    for minute, bad in enumerate((DAY_BEFORE, TWO_DAYS_BEFORE), start=1):
        stage.fails(bad, at=NOW + minute * MINUTE)
        tell(NOW + minute * MINUTE)
    assert subjects() == ["[opened]"]
    tell(NOW + outbox.ESCALATION_WINDOW + MINUTE)
    assert subjects() == ["[opened]", "[worse]"]
    assert "dc2: [2026-11-14, 2026-11-17)" in mail.outbox[1].body


def test_whoever_was_not_told_yet_hears_the_whole_with_the_first_message(stage: FailingDataset) -> None:
    stage.opened()
    stage.fails(DAY_BEFORE, at=NOW + MINUTE)
    tell(NOW + MINUTE)
    assert subjects() == ["[opened]"]
    assert "dc2: [2026-11-15, 2026-11-17)" in mail.outbox[0].body


def test_a_message_that_a_sender_takes_at_that_moment_is_not_rewritten(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words were read already; the news needs a message of its own."""
    stage.opened()
    before, letter = Message.objects.get().body, MessageContent.render

    def taken(content: MessageContent, occasion: str) -> RenderedMessage:
        Message.objects.filter(occasion="opened").update(leased_until=Now() + sender.LEASE)
        return letter(content, occasion)

    monkeypatch.setattr(MessageContent, "render", taken)
    stage.fails(DAY_BEFORE, at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    opening, worse = Message.objects.order_by("pk")
    assert (opening.body, worse.occasion) == (before, "worse")
    assert "dc2: [2026-11-15, 2026-11-17)" in worse.body


def test_what_healed_meanwhile_is_not_told_as_worse(stage: FailingDataset) -> None:
    incident = opened(stage)
    first = incident.spans.get().unit
    second = stage.fails(DAY_BEFORE, at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    for unit in (first, second):
        stage.passes(unit, at=NOW + 2 * MINUTE)
    tell(NOW + 2 * MINUTE)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]", "[resolved]"]


# Snooze


def test_until_it_gets_worse_and_then_it_is_told(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    actions.snooze(incident.pk, None, until_worse=True, actor=ana, now=NOW)
    assert IncidentEvent.objects.get(kind="snoozed").text == "until it gets worse"
    stage.fails(DAY_BEFORE, at=NOW + DAY)
    tell(NOW + DAY)
    assert subjects() == ["[opened]", "[worse]"]
    incident.refresh_from_db()
    assert (incident.snoozed_until, incident.snoozed_until_worse) == (None, False)
    assert IncidentEvent.objects.get(kind="snooze_ended").text == "worse: more data fails: dc2: 2026-11-15"


def test_until_a_time_even_if_it_gets_worse(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    actions.snooze(incident.pk, NOW + DAY, actor=ana, now=NOW)
    stage.fails(DAY_BEFORE, at=NOW + HOUR)
    tell(NOW + HOUR)
    held = Message.objects.get(occasion="worse")
    assert (held.state, held.why) == ("held", "snoozed")
    tell(NOW + DAY)
    assert subjects() == ["[opened]", "[worse]"]


def test_for_three_more_failures(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    unit = incident.spans.get().unit
    actions.snooze(incident.pk, None, failures=3, actor=ana, now=NOW)
    for hour in (1, 2):
        stage.see(unit, Outcome.FAIL, at=NOW + hour * HOUR)
        tell(NOW + hour * HOUR)
    assert subjects() == ["[opened]"]
    stage.see(unit, Outcome.FAIL, at=NOW + 3 * HOUR)
    tell(NOW + 3 * HOUR)
    assert subjects() == ["[opened]", "[worse]"]
    assert IncidentEvent.objects.get(kind="snooze_ended").text == "failed 3 more times since it was snoozed"


def test_an_error_is_no_failure_to_count(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    actions.snooze(incident.pk, None, failures=1, actor=ana, now=NOW)
    stage.see(incident.spans.get().unit, Outcome.ERROR, at=NOW + HOUR)
    assert snoozes.end_due_snoozes(now=NOW + HOUR) == 0


def test_without_a_time_it_ends_after_thirty_days(stage: FailingDataset, ana: User) -> None:
    stage.opened()
    incident = Incident.objects.get()
    actions.snooze(incident.pk, None, until_worse=True, actor=ana, now=NOW)
    tell(NOW)
    assert subjects() == []
    tell(NOW + snooze.MAX_SNOOZE)
    assert subjects() == ["[opened]"]


def test_the_verdict_and_the_tests_go_on(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    unit = incident.spans.get().unit
    before = (unit.verdict, unit.due_at)
    actions.snooze(incident.pk, None, until_worse=True, actor=ana, now=NOW)
    unit.refresh_from_db()
    assert (unit.verdict, unit.due_at) == before
    stage.passes(unit, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]", "[resolved]"]


def test_a_snooze_is_taken_back(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    actions.snooze(incident.pk, None, failures=2, actor=ana, now=NOW)
    tell(NOW)
    actions.wake(incident.pk, actor=ana, now=NOW + MINUTE)
    tell(NOW + MINUTE)
    assert subjects() == ["[opened]"]
    ended = IncidentEvent.objects.get(kind="snooze_ended")
    assert (ended.actor, ended.text) == ("ana", "by hand")
    with pytest.raises(Conflict, match="is not snoozed"):
        actions.wake(incident.pk, actor=ana, now=NOW + 2 * MINUTE)


def test_a_snooze_without_an_end_is_refused_and_ends_no_other(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    actions.snooze(incident.pk, NOW + DAY, actor=ana, now=NOW)
    with pytest.raises(Refused, match="Say until when"):
        actions.snooze(incident.pk, None, actor=ana, now=NOW + MINUTE)
    incident.refresh_from_db()
    assert incident.snoozed_until == NOW + DAY


def test_it_ends_with_the_incident_and_what_begins_again_is_told(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    unit = incident.spans.get().unit
    actions.snooze(incident.pk, None, until_worse=True, failures=3, actor=ana, now=NOW)
    stage.passes(unit, at=NOW + HOUR)
    tell(NOW + HOUR)
    incident.refresh_from_db()
    assert not snooze.snooze_of(incident, now=NOW + HOUR).is_any
    stage.see(unit, Outcome.FAIL, at=NOW + 2 * HOUR)
    tell(NOW + 2 * HOUR)
    assert subjects() == ["[opened]", "[resolved]", "[reopened]"]


def test_so_it_does_with_the_dataset(stage: FailingDataset, ana: User) -> None:
    incident = opened(stage)
    actions.snooze(incident.pk, NOW + DAY, actor=ana, now=NOW)
    stage.dataset.offboarded_at = NOW + HOUR
    stage.dataset.save()
    close_offboarded(now=NOW + HOUR)
    incident.refresh_from_db()
    assert (incident.resolution, incident.snoozed_until) == ("offboarded", None)


@pytest.mark.parametrize("failures", [0, -1, 1001])
def test_a_snooze_for_no_failures_is_refused(stage: FailingDataset, ana: User, failures: int) -> None:
    incident = stage.opened()
    with pytest.raises(Refused) as refused:
        actions.snooze(incident.pk, NOW - HOUR, failures=failures, actor=ana, now=NOW)
    assert set(refused.value.fields) == {"until", "failures"}


def test_what_it_waits_for_can_be_asked() -> None:
    wanted = snooze.Snooze(NOW + DAY, until_worse=True, failures=1)
    assert str(wanted) == "until it gets worse or for 1 more failure or until 2026-11-18 19:32 UTC"
    incident = Incident(**wanted.fields(now=NOW))
    assert snooze.snooze_of(incident, now=NOW) == wanted
    assert snooze.snooze_of(Incident(**snooze.Snooze(failures=2).fields(now=NOW)), now=NOW) == snooze.Snooze(failures=2)
    assert not snooze.snooze_of(incident, now=NOW + DAY).is_any


def test_each_end_can_be_asked_for_over_the_api(stage: FailingDataset) -> None:
    incident = stage.opened()
    person = factories.user()
    factories.member(person, stage.dataset.team, Role.ON_CALL)
    client = Client()
    client.force_login(person)
    where = f"/api/v1/incidents/{incident.pk}/snooze"
    for body, text in (
        ({"until_worse": True}, "until it gets worse"),
        ({"failures": 3}, "for 3 more failures"),
    ):
        assert client.post(where, body, content_type="application/json").status_code == 200
        assert IncidentEvent.objects.filter(kind="snoozed").latest("pk").text == text
    assert client.post(where, {"failures": 0}, content_type="application/json").status_code == 400
    refused = client.post(where, {"until": None}, content_type="application/json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (422, ["until"])
    for expect in (200, 409):
        assert client.post(where.replace("snooze", "wake"), content_type="application/json").status_code == expect
