"""Which category holds the messages of which other one: by default, as a dataset has it, never in a cycle."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client

from incidents.alerts import suppression_rules
from incidents.domain.alerting.suppression import CATEGORIES, DEFAULT_PAIRS
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, IncidentEvent, Message, SuppressionRule
from incidents.notifications.send_conditions import suppression_pairs
from incidents.notifications.sender import send_due_messages
from incidents.record.upstream import open_upstream_incidents
from lakehub.accounts.models import AuditEntry, Role, Team
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.outcome import Verdict
from quality.models import Category
from tests import factories
from tests.factories import HOUR, MINUTE, NOW
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    made = FailingDataset()
    Team.objects.update(email="ops@example.org")
    return made


def put(stage: FailingDataset, by: str, suppresses: str, *, counts: bool = True) -> None:
    suppression_rules.set_suppression(stage.dataset, by, suppresses, counts=counts, actor="ana", now=NOW)


def tell(at: datetime) -> None:
    process_flips(now=at)
    send_due_messages(now=at)


def state_of(category: Category) -> tuple[str, str]:
    message = Message.objects.filter(incident__category=category).earliest("pk")
    return message.state, message.why


def test_a_rule_of_the_dataset_holds_as_freshness_does(stage: FailingDataset) -> None:
    put(stage, "completeness", "consistency")
    missing = stage.fails(category=Category.COMPLETENESS)
    other = stage.fails()
    tell(NOW)
    by = Incident.objects.get(category=Category.COMPLETENESS)
    assert state_of(Category.CONSISTENCY) == ("held", f"flights@dc2 fails in completeness: #{by.pk}")
    suppressed = IncidentEvent.objects.get(kind="suppressed")
    assert (suppressed.text, suppressed.detail) == (
        f"by #{by.pk}: flights@dc2 fails in completeness: #{by.pk}",
        {"by": by.pk},
    )
    stage.passes(missing, at=NOW + HOUR)
    stage.passes(other, at=NOW + HOUR + MINUTE)
    tell(NOW + HOUR + 2 * MINUTE)
    assert state_of(Category.CONSISTENCY)[0] == "dropped"


def test_it_explains_the_same_data_only(stage: FailingDataset) -> None:
    put(stage, "completeness", "consistency")
    stage.fails(DAY_BEFORE, category=Category.COMPLETENESS)
    stage.fails(BAD_DAY)
    tell(NOW)
    assert state_of(Category.CONSISTENCY) == ("sent", "")


def test_a_rule_looks_at_copies_of_the_dataset_itself(stage: FailingDataset) -> None:
    """Completeness involves the copies upstream: their freshness explains it, what else fails there does not."""
    put(stage, "duplicates", "completeness")
    upstream = factories.dataset("upstream", copies=("dc2",))
    factories.edge(upstream, stage.dataset)
    factories.unit(factories.test(upstream, Category.DUPLICATES), over=BAD_DAY, verdict=Verdict.FAIL)
    stage.fails(category=Category.COMPLETENESS)
    tell(NOW)
    assert state_of(Category.COMPLETENESS) == ("sent", "")


def test_a_default_that_is_taken_away_holds_no_more(stage: FailingDataset) -> None:
    stage.stale(BAD_DAY.start)
    stage.fails()
    tell(NOW)
    assert state_of(Category.CONSISTENCY)[0] == "held"
    put(stage, "freshness", "consistency", counts=False)
    tell(NOW)
    assert state_of(Category.CONSISTENCY) == ("held", "waits for the rerun")
    stage.fails(at=NOW + MINUTE)
    tell(NOW + 2 * MINUTE)
    assert state_of(Category.CONSISTENCY) == ("sent", "")


def test_the_timeline_says_once_by_what_it_is_suppressed(stage: FailingDataset) -> None:
    Team.objects.update(webhook_url="https://hooks.example.org/x")
    stage.stale(BAD_DAY.start)
    stage.fails()
    for minute in range(3):
        tell(NOW + minute * MINUTE)
    assert Message.objects.filter(incident__category=Category.CONSISTENCY, state="held").count() == 2
    assert IncidentEvent.objects.filter(kind="suppressed").count() == 1


@pytest.mark.parametrize(
    ("rules", "way"),
    [
        ([("ingestion", "freshness")], "freshness → ingestion → freshness"),
        (
            [("completeness", "duplicates"), ("duplicates", "others"), ("others", "completeness")],
            "completeness → duplicates → others → completeness",
        ),
    ],
)
def test_a_cycle_is_refused_and_named(stage: FailingDataset, rules: list[tuple[str, str]], way: str) -> None:
    *before, last = rules
    for by, suppresses in before:
        put(stage, by, suppresses)
    with pytest.raises(Refused, match=way):
        put(stage, *last)
    assert SuppressionRule.objects.count() == len(before), "nothing of it was kept"


def test_a_cycle_can_be_made_room_for(stage: FailingDataset) -> None:
    put(stage, "freshness", "ingestion", counts=False)
    put(stage, "ingestion", "freshness")
    assert ("ingestion", "freshness") in suppression_pairs(stage.dataset)
    suppression_rules.reset_suppression(stage.dataset, actor="ana", now=NOW)
    assert suppression_pairs(stage.dataset) == DEFAULT_PAIRS
    assert AuditEntry.objects.filter(action__endswith="suppression").count() == 3


def test_what_is_as_the_default_has_it_is_no_rule(stage: FailingDataset) -> None:
    put(stage, "freshness", "others")
    put(stage, "others", "duplicates", counts=False)
    assert not SuppressionRule.objects.exists()


def test_a_category_that_is_not_there_and_one_by_itself_are_refused(stage: FailingDataset) -> None:
    with pytest.raises(NotFound, match="Did you mean `freshness`"):
        put(stage, "freshnes", "others")
    with pytest.raises(Refused, match="cannot suppress itself"):
        put(stage, "others", "others")


def test_the_rules_are_changed_over_the_api(stage: FailingDataset) -> None:
    person = factories.user()
    factories.member(person, stage.dataset.team, Role.OWNER)
    client = Client()
    client.force_login(person)
    where = "/api/v1/datasets/flights/suppression"
    assert client.get(where).json()["is_default"] is True
    body = {"by": "completeness", "suppresses": "duplicates"}
    put = client.post(where, body, content_type="application/json")
    assert body in put.json()["pairs"]
    cycle = client.post(where, {"by": "duplicates", "suppresses": "completeness"}, content_type="application/json")
    assert (cycle.status_code, list(cycle.json()["error"]["fields"])) == (422, ["suppresses"])
    assert client.delete(where).json()["is_default"] is True


# Upstream


def test_open_incidents_upstream_are_shown_the_nearest_first(stage: FailingDataset) -> None:
    near, far, unrelated = (factories.dataset(name) for name in ("near", "far", "unrelated"))
    factories.edge(near, stage.dataset)
    factories.edge(far, near)
    factories.edge(stage.dataset, far)
    for dataset in (far, near, unrelated, stage.dataset):
        factories.incident(dataset, Category.FRESHNESS)
    factories.incident(near, Category.OTHERS, resolved_at=NOW, state="resolved")
    factories.incident(near, Category.OTHERS, reported=True, state="waiting")
    assert [
        (upstream.incident.dataset.name, upstream.steps) for upstream in open_upstream_incidents(stage.dataset)
    ] == [
        ("near", 1),
        ("far", 2),
    ]
    assert open_upstream_incidents(unrelated) == []


def test_an_incident_says_over_the_api_by_which_it_is_suppressed_and_what_is_open_upstream(
    stage: FailingDataset,
) -> None:
    planes = factories.dataset("planes")
    factories.edge(planes, stage.dataset)
    above = factories.incident(planes, Category.FRESHNESS)
    stage.stale(BAD_DAY.start)
    stage.fails()
    tell(NOW)
    by, held = (
        Incident.objects.get(dataset=stage.dataset, category=category)
        for category in (Category.FRESHNESS, Category.CONSISTENCY)
    )
    client = Client()
    client.force_login(factories.user())
    reply = client.get(f"/api/v1/incidents/{held.pk}").json()
    assert (reply["suppressed_by"], reply["upstream"]) == (by.pk, [above.pk])
    assert client.get(f"/api/v1/incidents/{by.pk}").json()["suppressed_by"] is None


def test_the_categories_are_those_of_the_tests() -> None:
    assert list(CATEGORIES) == Category.values
