"""Routes: what they take, quiet hours, digests; nothing is lost when one is taken away or a sender is killed."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from incidents.channels import DeliveryError
from incidents.channels.email import Email
from incidents.lifecycle.intake import process_flips
from incidents.models import Digest, Incident, IncidentEvent, Message, Route
from incidents.notifications import routes
from incidents.notifications.periodic import digests
from incidents.notifications.sender import send_due_messages
from incidents.tasks import send_due as send_every_second
from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role, Team
from lakehub.kernel.errors import NotFound, Refused
from quality.models import Category
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db

NIGHT = datetime(2026, 11, 18, 4, tzinfo=UTC)
"""23:00 in New York."""


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset()


def route(stage: FailingDataset, address: str = "ops@example.org", **fields: Any) -> Route:
    fields = {"channel": "email", "address": address, "zone": "America/New_York", **fields}
    return routes.set_route(stage.dataset.team, fields, actor="ana", now=NOW)


def tell(at: datetime) -> None:
    process_flips(now=at)
    send_due_messages(now=at)
    digests.write_due_digests(now=at)
    digests.send_due_digests(now=at)


def sent() -> list[tuple[str, str]]:
    return [(message.to[0], message.subject.split("]")[0] + "]") for message in mail.outbox]


def test_without_a_route_the_addresses_of_the_team_are_told(stage: FailingDataset) -> None:
    Team.objects.update(email="team@example.org")
    stage.fails()
    tell(NOW)
    assert sent() == [("team@example.org", "[opened]")]


def test_a_route_takes_the_place_of_the_addresses_and_each_takes_what_it_asks_for(stage: FailingDataset) -> None:
    Team.objects.update(email="team@example.org")
    route(stage, "all@example.org")
    route(stage, "tier0@example.org", tiers=[0])
    route(stage, "fresh@example.org", categories=["freshness"])
    route(stage, "loud@example.org", least="critical")
    route(stage, "high@example.org", least="high", tiers=[1, 2], categories=["consistency"])
    route(stage, "off@example.org", enabled=False)
    stage.fails()
    tell(NOW)
    assert sent() == [("all@example.org", "[opened]"), ("high@example.org", "[opened]")]
    assert set(Message.objects.values_list("recipient_reason", flat=True)) == {"route of team flight-ops"}


def test_where_no_route_takes_it_the_timeline_says_so(stage: FailingDataset) -> None:
    route(stage, tiers=[0])
    incident = stage.opened()
    assert not incident.messages.exists()
    text = IncidentEvent.objects.get(kind="not_told").text
    assert text == "opened: no route of team flight-ops takes tier 1, consistency, high"


def test_who_heard_of_the_beginning_hears_of_the_end_though_the_route_takes_it_no_more(stage: FailingDataset) -> None:
    made = route(stage)
    unit = stage.fails()
    tell(NOW)
    routes.set_route(stage.dataset.team, {"tiers": [5]}, actor="ana", now=NOW, number=made.pk)
    stage.passes(unit, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert [subject for _, subject in sent()] == ["[opened]", "[resolved]"]


# Quiet hours


def night(stage: FailingDataset) -> Route:
    return route(stage, quiet_from=time(22), quiet_to=time(7))


def test_in_quiet_hours_a_message_waits_for_the_morning(stage: FailingDataset) -> None:
    night(stage)
    stage.fails(at=NIGHT)
    tell(NIGHT)
    held = Message.objects.get()
    assert (held.state, held.why) == ("held", "quiet hours of team flight-ops until 2026-11-18 07:00 America/New_York")
    tell(NIGHT + 8 * HOUR - MINUTE)
    assert sent() == []
    tell(NIGHT + 8 * HOUR)
    assert sent() == [("ops@example.org", "[opened]")]


def test_what_heals_in_the_night_wakes_nobody_and_bores_nobody(stage: FailingDataset) -> None:
    night(stage)
    unit = stage.fails(at=NIGHT)
    tell(NIGHT)
    stage.passes(unit, at=NIGHT + HOUR)
    tell(NIGHT + HOUR)
    tell(NIGHT + 8 * HOUR)
    assert sent() == []
    assert set(Message.objects.values_list("state", flat=True)) == {"dropped"}


def test_what_ends_in_the_night_is_told_in_the_morning(stage: FailingDataset) -> None:
    night(stage)
    unit = stage.fails(at=NOW)
    tell(NOW)
    stage.passes(unit, at=NIGHT)
    tell(NIGHT)
    assert [subject for _, subject in sent()] == ["[opened]"]
    tell(NIGHT + 8 * HOUR)
    assert [subject for _, subject in sent()] == ["[opened]", "[resolved]"]


def test_an_address_with_another_route_that_is_loud_is_told_at_once(stage: FailingDataset) -> None:
    night(stage)
    route(stage, least="high")
    stage.fails(at=NIGHT)
    tell(NIGHT)
    assert len(mail.outbox) == Message.objects.count() == 1


# Digests


def test_a_digest_lists_what_was_collected_in_one_message(stage: FailingDataset) -> None:
    route(stage, digest="daily", digest_at=time(8))
    healed = stage.fails()
    stage.fails(category=Category.DUPLICATES)
    tell(NOW)
    assert set(Message.objects.values_list("state", "why")) == {
        ("collected", "collected for the daily digest of 2026-11-18 08:00 America/New_York")
    }
    stage.passes(healed, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert sent() == []
    eight = datetime(2026, 11, 18, 13, tzinfo=UTC)
    tell(eight)
    (message,) = mail.outbox
    assert message.subject == "[digest] flight-ops: 2 incidents, 1 of them resolved"
    ended = Incident.objects.get(category=Category.CONSISTENCY)
    assert f"#{ended.pk} " in message.body
    assert "opened 2026-11-17 19:32 UTC, resolved 2026-11-17 20:32 UTC" in message.body
    assert set(Message.objects.values_list("state", "sent_at")) == {("sent", eight)}
    tell(eight)
    assert len(mail.outbox) == 1


def test_each_hour_has_its_digest(stage: FailingDataset) -> None:
    route(stage, digest="hourly")
    stage.fails()
    tell(NOW)
    tell(NOW + 28 * MINUTE)
    stage.fails(category=Category.DUPLICATES, at=NOW + 30 * MINUTE)
    tell(NOW + 30 * MINUTE)
    tell(NOW + 88 * MINUTE)
    assert [subject for _, subject in sent()] == ["[digest]", "[digest]"]
    assert set(Message.objects.values_list("state", flat=True)) == {"sent"}


def test_a_digest_that_does_not_arrive_is_tried_again_and_given_up_in_the_end(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    route(stage, digest="hourly")
    stage.fails()
    tell(NOW)
    monkeypatch.setattr(Email, "send", _down)
    digests.write_due_digests(now=NOW + HOUR)
    for attempt in range(digests.MAX_ATTEMPTS):
        assert Digest.objects.get().state == "pending"
        digests.send_due_digests(now=NOW + HOUR + attempt * DAY)
    assert (Digest.objects.get().state, Message.objects.get().state) == ("failed", "failed")
    assert "The mail server is down." in IncidentEvent.objects.get(kind="message_failed").text


def test_a_sender_that_is_killed_before_it_notes_sends_the_same_digest_again(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    route(stage, digest="hourly")
    stage.fails()
    tell(NOW)
    digests.write_due_digests(now=NOW + HOUR)
    monkeypatch.setattr(digests, "_update_and_release", _killed)
    with pytest.raises(KeyboardInterrupt):
        digests.send_due_digests(now=NOW + HOUR)
    monkeypatch.undo()
    assert digests.send_due_digests(now=NOW + HOUR) == 0, "its lease is not over"
    Digest.objects.update(leased_until=None)
    assert digests.send_due_digests(now=NOW + HOUR) == 1
    first, second = mail.outbox
    assert first.extra_headers["Message-ID"] == second.extra_headers["Message-ID"]


def _down(*args: object, **kwargs: object) -> None:
    raise DeliveryError("The mail server is down.")


def _killed(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt


def test_what_a_route_collected_goes_out_when_it_is_taken_away(stage: FailingDataset) -> None:
    made = route(stage, digest="daily")
    stage.fails()
    tell(NOW)
    routes.remove_route(stage.dataset.team, made.pk, actor="ana", now=NOW)
    tell(NOW + MINUTE)
    tell(NOW + 2 * MINUTE)
    assert sent() == [("ops@example.org", "[opened]")]


def test_looking_for_what_is_due_writes_nothing_where_there_is_nothing(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second; on a small database an update that changes nothing keeps everybody else from writing."""
    route(stage, digest="daily")
    stage.fails()
    tell(NOW)
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW + MINUTE)
    with CaptureQueriesContext(connection) as asked:
        send_every_second()
    assert [query["sql"] for query in asked if not query["sql"].startswith("SELECT")] == []


# What is refused


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"channel": "emial"}, "channel", "Did you mean `email`"),
        ({"address": "nobody"}, "address", "no e-mail address"),
        ({"address": " "}, "address", "Say where to"),
        ({"least": "loud"}, "least", "no severity `loud`"),
        ({"tiers": [7]}, "tiers", "no tier `7`"),
        ({"categories": ["freshnes"]}, "categories", "Did you mean `freshness`"),
        ({"zone": "Europe/Lisbn"}, "zone", "Did you mean `Europe/Lisbon`"),
        ({"quiet_from": time(22)}, "quiet_to", "a beginning and an end"),
        ({"quiet_from": time(22), "quiet_to": time(22)}, "quiet_to", "never end"),
        ({"quiet_days": [7]}, "quiet_days", "`7`"),
        ({"digst": "daily"}, "digst", "Did you mean `digest`"),
    ],
)
def test_what_cannot_work_is_refused_by_field(
    stage: FailingDataset, fields: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        route(stage, **fields)
    assert why in refused.value.fields[field]
    assert not Route.objects.exists()


def test_a_pager_takes_no_digest(stage: FailingDataset) -> None:
    with pytest.raises(Refused) as refused:
        route(stage, channel="pagerduty", address="0123456789abcdef0123456789abcdef", digest="daily")
    assert "a digest would open none" in refused.value.fields["digest"]


def test_the_route_of_another_team_is_not_there(stage: FailingDataset) -> None:
    made = route(stage)
    with pytest.raises(NotFound, match="Team other has no route"):
        routes.set_route(factories.team("other"), {"least": "low"}, actor="ana", now=NOW, number=made.pk)


# Over the API


def signed_in(stage: FailingDataset, role: Role) -> Client:
    person = factories.user()
    factories.member(person, stage.dataset.team, role)
    client = Client()
    client.force_login(person)
    return client


WHERE = "/api/v1/teams/flight-ops/routes"
HOOK = {"channel": "webhook", "address": "https://hooks.example.org/services/T0/secret", "least": "high"}


def test_a_route_is_made_changed_and_taken_away(stage: FailingDataset) -> None:
    owner = signed_in(stage, Role.OWNER)
    made = owner.post(WHERE, HOOK, content_type="application/json")
    assert made.status_code == 201
    address = f"{WHERE}/{made.json()['id']}"
    changed = owner.patch(address, {"quiet_from": "22:00", "quiet_to": "07:00"}, content_type="application/json")
    assert (changed.json()["quiet_from"], changed.json()["least"]) == ("22:00:00", "high")
    assert owner.delete(address).status_code == 204
    assert owner.get(WHERE).json() == []
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "set route",
        "set route",
        "remove route",
    ]
    assert "secret" not in str(list(AuditEntry.objects.values_list("detail", flat=True)))


def test_a_secret_address_is_shown_to_nobody_again(stage: FailingDataset) -> None:
    owner = signed_in(stage, Role.OWNER)
    made = owner.post(WHERE, HOOK, content_type="application/json")
    address = f"{WHERE}/{made.json()['id']}"
    page = f"/teams/flight-ops/routes/{made.json()['id']}"
    viewer = signed_in(stage, Role.VIEWER)
    answers = [
        made,
        owner.get(WHERE),
        owner.get(address),
        viewer.get(WHERE),
        owner.get(page),
        owner.get("/teams/flight-ops/routes"),
    ]
    assert not any("secret" in answer.content.decode() for answer in answers)
    assert made.json()["address"] == "hooks.example.org"
    assert viewer.post(WHERE, HOOK, content_type="application/json").status_code == 403
    assert viewer.get("/api/v1/teams/flight-opps/routes").status_code == 404


def test_an_address_that_is_left_empty_stays_and_another_channel_needs_its_own(stage: FailingDataset) -> None:
    owner = signed_in(stage, Role.OWNER)
    number = owner.post(WHERE, HOOK, content_type="application/json").json()["id"]
    form = {"channel": "webhook", "address": "", "least": "low", "zone": "UTC", "digest": "none", "enabled": "on"}
    page = f"/teams/flight-ops/routes/{number}"
    assert owner.post(page, form).status_code == 302
    assert (Route.objects.get().address, Route.objects.get().least) == (HOOK["address"], "low")
    refused = owner.post(page, form | {"channel": "email"})
    assert refused.status_code == 422
    assert "Another channel has other addresses" in refused.content.decode()
    assert "secret" not in refused.content.decode()
