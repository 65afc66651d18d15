"""Columns that come, go or change their type are a finding: by policy an incident, else a warning for a week."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from incidents.lifecycle.intake import process_flips
from incidents.lifecycle.resolution import resolve_by_force
from incidents.models import Incident
from ingestion.lake import commits
from ingestion.models import Finding
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from quality.execution.ingestion_findings import observe_findings
from quality.models import Unit
from quality.planning.change_polling import poll_due_copies
from quality.state.sla_overrides import override_problems
from tests import factories
from tests.factories import DAY, HOUR, NOW
from tests.web.ingestion import hudi_timeline

pytestmark = pytest.mark.django_db
ADDED = "ALTER TABLE flights ADD COLUMN carrier TEXT"
REMOVED = "ALTER TABLE flights DROP COLUMN tailnum"


@pytest.fixture
def source(tmp_path: Path) -> sa.Engine:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'ops.db'}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE flights (id INTEGER, flight_date TEXT, tailnum TEXT)"))
    return engine


@pytest.fixture
def flights(source: sa.Engine) -> Dataset:
    dataset = factories.dataset("flights", copies=("dc1", "dc2"), ingested=False)
    factories.feed(dataset, connection=factories.connection(url=str(source.url)))
    changes.refresh_columns(dataset, actor="ana", now=NOW - DAY)
    Finding.objects.all().delete()
    return dataset


def changed(dataset: Dataset, source: sa.Engine, *statements: str, at: timedelta = timedelta()) -> None:
    """The source is changed, its columns are read, and what was found becomes verdicts and incidents."""
    with source.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    dataset.refresh_from_db()
    changes.refresh_columns(dataset, actor="ana", now=NOW + at)
    seen(at)


def seen(at: timedelta) -> None:
    observe_findings(now=NOW + at)
    process_flips(now=NOW + at)


def verdicts() -> set[tuple[str, str]]:
    return set(Unit.objects.filter(test__key="finding:schema_changed").values_list("verdict", "reason"))


def test_a_column_that_is_gone_is_an_incident_on_every_copy(flights: Dataset, source: sa.Engine) -> None:
    changed(flights, source, REMOVED, ADDED)
    incident = Incident.objects.get()
    assert (incident.category, incident.spans.count(), incident.state) == ("ingestion", 2, "open")
    assert {each.detail["message"] for each in Finding.objects.all()} == {
        "removed: tailnum (string); added: carrier (string)"
    }


def test_a_type_that_has_a_name_now_did_not_change(flights: Dataset, source: sa.Engine) -> None:
    flights.columns = [{**column, "type": "other"} for column in flights.columns]
    flights.save()
    changed(flights, source)
    assert [column["type"] for column in flights.columns] == ["integer", "string", "string"]
    assert not Finding.objects.exists()


def test_a_column_that_was_added_is_a_warning_for_a_week(flights: Dataset, source: sa.Engine) -> None:
    changed(flights, source, ADDED)
    assert verdicts() == {("warn", "accepted")}
    seen(8 * DAY)
    assert verdicts() == {("pass", "passing")}
    assert not Incident.objects.exists()


@pytest.mark.parametrize(
    ("policy", "statement", "incidents"), [("show", REMOVED, 0), ("incident", ADDED, 1), ("breaking", REMOVED, 1)]
)
def test_the_policy_of_the_dataset_decides(
    flights: Dataset, source: sa.Engine, policy: str, statement: str, incidents: int
) -> None:
    Dataset.objects.update(overrides={"schema_changes": policy})
    changed(flights, source, statement)
    assert Incident.objects.count() == incidents
    assert Finding.objects.count() == 2


def test_columns_that_are_back_as_they_were_end_it(flights: Dataset, source: sa.Engine) -> None:
    changed(flights, source, REMOVED)
    changed(flights, source, ADDED, at=HOUR)
    assert Incident.objects.get().state == "open"
    changed(
        flights,
        source,
        "ALTER TABLE flights DROP COLUMN carrier",
        "ALTER TABLE flights ADD COLUMN tailnum TEXT",
        at=2 * HOUR,
    )
    assert Incident.objects.get().state == "resolved"


def test_a_second_change_is_told_though_the_first_was_accepted(flights: Dataset, source: sa.Engine) -> None:
    changed(flights, source, REMOVED)
    resolve_by_force(Incident.objects.get().pk, resolution="accepted", actor="ana", now=NOW + HOUR, why="planned")
    assert verdicts() == {("warn", "accepted")}
    changed(flights, source, ADDED, at=2 * HOUR)
    assert verdicts() == {("warn", "accepted")}
    changed(flights, source, "ALTER TABLE flights DROP COLUMN carrier", at=3 * HOUR)
    assert verdicts() == {("fail", "sustained")}
    assert Incident.objects.filter(resolved_at=None).count() == 1


def test_a_breaking_change_after_one_that_is_only_shown_is_an_incident(flights: Dataset, source: sa.Engine) -> None:
    changed(flights, source, ADDED)
    changed(flights, source, REMOVED, at=HOUR)
    assert verdicts() == {("fail", "sustained")}


def test_what_is_only_watched_is_looked_at_with_every_poll(flights: Dataset, source: sa.Engine) -> None:
    with source.begin() as connection:
        connection.execute(sa.text(REMOVED))
    poll_due_copies(now=NOW)
    assert Finding.objects.filter(kind="schema_changed").count() == 2


def test_a_table_without_partitions_is_looked_at_once_a_cadence(flights: Dataset, source: sa.Engine) -> None:
    Dataset.objects.update(grain="none", partition_column="")
    poll_due_copies(now=NOW)
    with source.begin() as connection:
        connection.execute(sa.text(REMOVED))
    poll_due_copies(now=NOW + timedelta(minutes=1))
    assert not Finding.objects.exists()
    poll_due_copies(now=NOW + DAY)
    assert {each.detail["message"] for each in Finding.objects.all()} == {"removed: tailnum (string)"}


def test_a_commit_that_lacks_a_column_of_the_source_reads_the_columns_again(
    flights: Dataset, source: sa.Engine, tmp_path: Path
) -> None:
    copy = factories.copy_of(flights)
    copy.uri = (tmp_path / "lake" / "flights").as_uri()
    copy.save()
    with source.begin() as connection:
        connection.execute(sa.text(REMOVED))
    facts = hudi_timeline.told_by("", schema={"conflicts": [], "missing": ["tailnum"]})
    hudi_timeline.commit(copy, "20261117100000000", {"2026-11-16": (1, 0, 0)}, run=facts)
    commits.record_new_commits(copy, now=NOW)
    assert Finding.objects.filter(kind="schema_changed").count() == 2


def test_a_policy_that_is_none_is_refused() -> None:
    (problem,) = override_problems({"schema_changes": "shwo"}, tier=1, zone="UTC")
    assert problem == "schema_changes='shwo' is not known. Did you mean `show`?"
