"""Who hears of an incident besides its owners: subscribers, owners downstream, people who are mentioned or assigned."""

from __future__ import annotations

import pytest

from incidents.lifecycle import actions, user_reports
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, Message, Span
from incidents.notifications import subscriptions
from incidents.notifications.mentions import names_in
from incidents.notifications.sender import send_due_messages
from incidents.record.downstream_impact import downstream_datasets
from lakehub.accounts.models import AuditEntry, Role, Team, User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.models import Unit
from tests import factories
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset, on_call_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.by_mail()


@pytest.fixture
def ana() -> User:
    return on_call_user("ana")


@pytest.fixture
def rui() -> User:
    """Reads the data; belongs to no team of its owners."""
    return factories.user("rui", email="rui@example.org")


def told(address: str) -> list[tuple[str, str, str]]:
    sent = [message for message in Message.objects.order_by("pk") if message.address == address]
    return [(message.occasion, message.state, message.recipient_reason) for message in sent]


def made_from(upstream: Dataset, name: str, team: str, *copies: str) -> Dataset:
    owner = factories.team(team)
    Team.objects.filter(pk=owner.pk).update(email=f"{team}@example.org")
    made = factories.dataset(name, team=owner, copies=copies or ("dc2",))
    factories.edge(upstream, made)
    return made


# Subscribers


def test_a_subscriber_hears_of_the_beginning_a_new_eta_and_the_end(stage: FailingDataset, ana: User, rui: User) -> None:
    subscriptions.subscribe(stage.dataset, user=rui, now=NOW)
    unit = stage.fails()
    process_flips(now=NOW)
    send_due_messages(now=NOW)
    incident = Incident.objects.get()
    actions.acknowledge(incident.pk, actor=ana, now=NOW)
    actions.annotate(incident.pk, {"backfill": "needed"}, actor=ana, now=NOW)
    actions.annotate(incident.pk, {"eta": NOW + HOUR}, actor=ana, now=NOW)
    stage.passes(unit, at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    send_due_messages(now=NOW + MINUTE)
    assert told("rui@example.org") == [
        ("opened", "sent", "subscribed: rui"),
        ("eta", "sent", "subscribed: rui"),
        ("resolved", "sent", "subscribed: rui"),
    ]


def test_who_unsubscribed_hears_no_more(stage: FailingDataset, rui: User) -> None:
    assert subscriptions.subscribe(stage.dataset, user=rui, now=NOW)
    assert not subscriptions.subscribe(stage.dataset, user=rui, now=NOW)
    assert subscriptions.unsubscribe(stage.dataset, user=rui, now=NOW)
    assert not subscriptions.unsubscribe(stage.dataset, user=rui, now=NOW)
    stage.opened()
    assert told("rui@example.org") == []
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["subscribe", "unsubscribe"]


def test_a_subscriber_without_an_address_is_named_on_the_timeline(stage: FailingDataset) -> None:
    subscriptions.subscribe(stage.dataset, user=factories.user("noa"), now=NOW)
    stage.opened()
    assert told("noa") == [("opened", "pending", "subscribed: noa, who has no e-mail address")]


def test_who_has_left_hears_nothing(stage: FailingDataset, rui: User) -> None:
    subscriptions.subscribe(stage.dataset, user=rui, now=NOW)
    User.objects.filter(pk=rui.pk).update(is_active=False)
    stage.opened()
    assert told("rui@example.org") == []


# Owners downstream


def test_owners_downstream_are_told_once_an_incident_by_what_lies_nearest(stage: FailingDataset) -> None:
    hourly = made_from(stage.dataset, "hourly", "analysts")
    made_from(hourly, "daily", "analysts")
    unit = stage.fails()
    process_flips(now=NOW)
    send_due_messages(now=NOW)
    stage.passes(unit, at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    stage.fails(at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    send_due_messages(now=NOW + HOUR)
    why = "owner of hourly, made from it: team analysts"
    assert told("analysts@example.org") == [("opened", "sent", why), ("resolved", "sent", why)]
    assert Incident.objects.get().state == "open"


def test_lineage_is_followed_three_steps_within_the_data_center(stage: FailingDataset) -> None:
    chain = stage.dataset
    for number in range(1, 5):
        chain = made_from(chain, f"step{number}", f"team{number}")
    made_from(stage.dataset, "elsewhere", "others", "dc1")
    gone = made_from(stage.dataset, "gone", "ghosts")
    Dataset.objects.filter(pk=gone.pk).update(offboarded_at=NOW)
    incident = stage.opened()
    spans = list(Span.objects.filter(incident=incident).select_related("copy"))
    reached = downstream_datasets(incident, spans)
    assert [(downstream.dataset.name, downstream.steps, downstream.via.name) for downstream in reached] == [
        ("step1", 1, "flights"),
        ("step2", 2, "step1"),
        ("step3", 3, "step2"),
    ]
    assert str(reached[1]) == "step2, 2 steps from it"
    assert told("others@example.org") == told("team4@example.org") == told("ghosts@example.org") == []
    assert told("team3@example.org")[0][2] == "owner of step3, 3 steps from it: team team3"


def test_lineage_that_goes_round_ends(stage: FailingDataset) -> None:
    made = made_from(stage.dataset, "hourly", "analysts")
    factories.edge(made, stage.dataset)
    assert [downstream.dataset.name for downstream in downstream_datasets(stage.opened(), Span.objects.all())] == [
        "hourly"
    ]


# Reports


def test_of_a_report_the_reader_and_followers_hear_once_it_is_acknowledged(
    stage: FailingDataset, ana: User, rui: User
) -> None:
    made_from(stage.dataset, "hourly", "analysts")
    noa = factories.user("noa", email="noa@example.org")
    subscriptions.subscribe(stage.dataset, user=noa, now=NOW)
    reported = user_reports.file_report(stage.dataset, "others", BAD_DAY, text="Odd.", reporter=rui, now=NOW)
    assert {address for (address,) in Message.objects.values_list("address")} == {"ops@example.org"}
    actions.acknowledge(reported.pk, actor=ana, now=NOW)
    user_reports.declare_fixed(reported.pk, why="Backfilled.", actor=ana, now=NOW + HOUR)
    assert [row[0] for row in told("noa@example.org")] == ["acknowledged", "resolved"]
    assert told("rui@example.org")[0] == ("acknowledged", "pending", "reported it: rui")
    assert [row[0] for row in told("analysts@example.org")] == ["acknowledged", "resolved"]


def test_who_reported_is_told_why_it_was_rejected(stage: FailingDataset, ana: User, rui: User) -> None:
    reported = user_reports.file_report(stage.dataset, "others", BAD_DAY, text="Odd.", reporter=rui, now=NOW)
    user_reports.reject_report(reported.pk, why="As designed.", actor=ana, now=NOW)
    send_due_messages(now=NOW)
    assert told("rui@example.org") == [("rejected", "sent", "reported it: rui")]
    assert "As designed." in Message.objects.filter(occasion="rejected")[0].body


# Mentions and assignees


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@ana, look. @ben? and (@flight-ops)", ["ana", "ben", "flight-ops"]),
        ("@ana @ana.", ["ana"]),
        ("mail ana@example.org about `@property`", []),
        ("@ana@example.org", ["ana@example.org"]),
        ("no one @ all", []),
    ],
)
def test_names_that_are_mentioned(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_who_is_mentioned_is_told_even_where_nobody_heard_of_the_incident(
    stage: FailingDataset, ana: User, rui: User
) -> None:
    incident = stage.opened()
    opening = Message.objects.get()
    opening.state, opening.address = "dropped", "rui@example.org"
    opening.save()
    actions.comment(incident.pk, "@rui does your report show it?", actor=ana, now=NOW)
    send_due_messages(now=NOW)
    message = Message.objects.get(occasion="mentioned")
    assert (message.address, message.state, message.recipient_reason) == ("rui@example.org", "sent", "mentioned: rui")
    assert "ana wrote: @rui does your report show it?" in message.body
    assert incident.events.get(kind="commented").detail["mentioned"] == ["rui"]


def test_a_team_is_mentioned_by_its_name(stage: FailingDataset, ana: User) -> None:
    factories.team("pricing")
    Team.objects.filter(name="pricing").update(email="pricing@example.org")
    actions.comment(stage.opened().pk, "@pricing: wait.", actor=ana, now=NOW)
    assert told("pricing@example.org") == [("mentioned", "pending", "mentioned: team pricing")]


def test_a_mention_of_nobody_is_refused_with_the_nearest_name(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    with pytest.raises(Refused, match=r"nobody and no team called `anna`. Did you mean `ana`\? Write `@anna` as code"):
        actions.comment(incident.pk, "@anna?", actor=ana, now=NOW)
    assert not incident.events.filter(kind="commented").exists()


def test_an_assignee_is_told_unless_they_took_it_themselves(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    ben = factories.user("ben", email="ben@example.org")
    factories.member(ben, factories.team(), Role.OWNER)
    actions.assign(number, "ben", actor=ana, now=NOW)
    actions.assign(number, "ana", actor=ana, now=NOW)
    assert told("ben@example.org") == [("assigned", "pending", "assigned to: ben")]
    assert told("ana@example.org") == []


def test_what_more_of_a_dataset_fails_is_one_incident_for_those_downstream(stage: FailingDataset) -> None:
    made_from(stage.dataset, "hourly", "analysts")
    stage.opened(day("2026-11-15"))
    stage.fails(BAD_DAY)
    process_flips(now=NOW)
    assert Unit.objects.filter(verdict="fail").count() == 2
    assert [row[0] for row in told("analysts@example.org")] == ["opened"]
