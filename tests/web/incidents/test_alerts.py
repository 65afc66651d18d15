"""Alerts follow the metadata of their dataset; what a person set stays; nobody unheard is counted as covered."""

from __future__ import annotations

import pytest
from django.db.models import F
from django.test import Client

from incidents.alerts import coverage, generate
from incidents.models import Alert, IncidentEvent, Message, Route
from lakehub.accounts.models import AuditEntry, Role, Team
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from quality.models import Category
from tests import factories
from tests.factories import NOW
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def flights() -> Dataset:
    Team.objects.update_or_create(name="flight-ops", defaults={"email": "ops@example.org"})
    return factories.dataset("flights", tier=1)


def tier(dataset: Dataset, tier: int) -> None:
    changes.update_dataset(dataset, {"tier": tier}, actor="ana", now=NOW)


def severities(dataset: Dataset) -> dict[str, str]:
    return {alert.category: alert.setting.severity.value for alert in generate.alerts_of(dataset)}


def test_each_category_of_a_live_dataset_gets_an_alert_once(flights: Dataset) -> None:
    factories.dataset("gone", offboarded_at=NOW)
    assert generate.generate_outdated_alerts(now=NOW) == 1
    assert severities(flights) == {
        **dict.fromkeys(("freshness", "completeness", "duplicates", "consistency"), "high"),
        **dict.fromkeys(("ingestion", "others"), "medium"),
    }
    assert generate.generate_outdated_alerts(now=NOW) == 0


def test_they_are_made_anew_when_the_metadata_changes(flights: Dataset) -> None:
    generate.generate_outdated_alerts(now=NOW)
    tier(flights, 0)
    assert generate.generate_outdated_alerts(now=NOW) == 1
    assert severities(flights)["freshness"] == "critical"
    assert {alert.metadata_version for alert in Alert.objects.all()} == {2}


def test_what_a_person_set_survives_and_says_so(flights: Dataset) -> None:
    generate.generate_outdated_alerts(now=NOW)
    generate.override_alert(flights, "freshness", {"severity": "low"}, actor="ana", now=NOW)
    tier(flights, 0)
    generate.generate_outdated_alerts(now=NOW)
    kept = Alert.objects.get(category="freshness")
    assert (kept.setting.severity, kept.severity, kept.overridden_by, kept.overridden_at) == (
        "low",
        "critical",
        "ana",
        NOW,
    )
    generate.override_alert(flights, "freshness", {}, actor="ben", now=NOW)
    kept.refresh_from_db()
    assert (kept.setting.severity, kept.overridden_by) == ("critical", "")
    assert AuditEntry.objects.filter(action="set alert").count() == 2


def test_the_urgency_that_a_dataset_overrides_counts(flights: Dataset) -> None:
    flights.overrides = {"severity": "mail"}
    flights.save()
    generate.generate_alerts(flights, now=NOW)
    assert severities(flights)["freshness"] == "low"


def test_what_cannot_be_overridden_is_refused(flights: Dataset) -> None:
    with pytest.raises(Refused, match="Did you mean `high`"):
        generate.override_alert(flights, "freshness", {"severity": "hihg"}, actor="ana", now=NOW)
    with pytest.raises(NotFound, match="Did you mean `freshness`"):
        generate.override_alert(flights, "freshnes", {"severity": "high"}, actor="ana", now=NOW)


def test_an_open_incident_that_matters_more_now_is_told_as_worse() -> None:
    stage = FailingDataset()
    generate.generate_alerts(stage.dataset, now=NOW)
    incident = stage.opened()
    tier(stage.dataset, 0)
    generate.generate_outdated_alerts(now=NOW)
    assert IncidentEvent.objects.get(kind="worse").text == "its severity is critical now, it was high"
    assert list(incident.messages.values_list("occasion", flat=True)) == ["opened"], (
        "it is not sent yet: it says so itself"
    )
    assert "severity critical" in Message.objects.get().body
    tier(stage.dataset, 3)
    generate.generate_outdated_alerts(now=NOW)
    assert IncidentEvent.objects.filter(kind="worse").count() == 1, "less is not worse"


def test_nobody_is_told_of_what_is_muted_and_the_timeline_says_why() -> None:
    stage = FailingDataset()
    generate.override_alert(stage.dataset, "consistency", {"muted": True, "why": "dc2 moves"}, actor="ana", now=NOW)
    incident = stage.opened()
    assert not incident.messages.exists()
    text = IncidentEvent.objects.get(kind="not_told").text
    assert text == "opened: alerts of flights in consistency are muted: dc2 moves"


# Coverage


def lacks() -> list[str]:
    return [why for uncovered in coverage.alert_coverage(now=NOW).uncovered for why in uncovered.reasons]


def test_a_dataset_is_covered_when_somebody_hears_of_every_category(flights: Dataset) -> None:
    factories.dataset("low", tier=4)
    assert lacks() == ["it has no alert for freshness, completeness, duplicates, consistency, ingestion, others yet"]
    generate.generate_outdated_alerts(now=NOW)
    covered = coverage.alert_coverage(now=NOW)
    assert (covered.covered, covered.datasets, covered.share) == (1, 1, 1.0)


def test_what_keeps_it_from_being_covered_is_named(flights: Dataset) -> None:
    generate.generate_outdated_alerts(now=NOW)
    Dataset.objects.update(metadata_version=F("metadata_version") + 1)
    generate.override_alert(flights, "others", {"muted": True, "why": "noise"}, actor="ana", now=NOW)
    Route.objects.create(team=flights.team, channel="email", address="ops@example.org", least="high")
    assert lacks() == [
        "its alerts are of version 1 of its metadata, which is at 2",
        "others is muted by ana: noise",
        "no route of team flight-ops takes its ingestion",
    ]


def test_the_log_is_nobody(flights: Dataset) -> None:
    generate.generate_outdated_alerts(now=NOW)
    Team.objects.update(email="")
    assert lacks() == ["its messages end in the log: team flight-ops named no address"]


def test_the_queries_of_coverage_do_not_grow_with_the_fleet(flights: Dataset, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    for number in range(5):
        factories.dataset(f"more{number}", tier=0)
    generate.generate_outdated_alerts(now=NOW)
    with django_assert_num_queries(3):
        assert coverage.alert_coverage(now=NOW).is_whole


# Over the API


@pytest.fixture
def owner(flights: Dataset) -> Client:
    person = factories.user("olga")
    factories.member(person, flights.team, Role.OWNER)
    client = Client()
    client.force_login(person)
    return client


WHERE = "/api/v1/datasets/flights/alerts"


def test_the_alerts_say_how_loud_who_is_told_and_what_holds_them(owner: Client, flights: Dataset) -> None:
    factories.quality_test(flights, Category.CONSISTENCY)
    generate.generate_alerts(flights, now=NOW)
    alerts = {alert["category"]: alert for alert in owner.get(WHERE).json()}
    consistency = alerts["consistency"]
    assert (consistency["severity"], consistency["muted"], consistency["suppressed_by"]) == (
        "high",
        False,
        ["freshness"],
    )
    assert consistency["told"] == [{"channel": "email", "address": "ops@example.org", "why": "team flight-ops"}]
    assert consistency["sustain"] == "02:00:00"
    assert alerts["freshness"]["suppressed_by"] == []


def test_an_override_is_set_and_taken_back(owner: Client, flights: Dataset) -> None:
    put = owner.put(f"{WHERE}/others", {"severity": "critical"}, content_type="application/json")
    assert (put.status_code, put.json()["severity"], put.json()["of_template"]) == (200, "critical", "medium")
    assert owner.delete(f"{WHERE}/others").json()["severity"] == "medium"
    muted = owner.put(f"{WHERE}/others", {"muted": True}, content_type="application/json")
    assert (muted.status_code, list(muted.json()["error"]["fields"])) == (422, ["why"])


def test_coverage_is_a_number(owner: Client, flights: Dataset) -> None:
    generate.generate_outdated_alerts(now=NOW)
    assert owner.get("/api/v1/alerts/coverage").json()["share"] == 1.0
    assert owner.get("/api/v1/alerts/coverage?tier=9").status_code == 422
