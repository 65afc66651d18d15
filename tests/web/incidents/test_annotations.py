"""What owners say of an incident, and the job that repairs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from incidents.lifecycle import actions, backfills
from incidents.lifecycle.intake import process_flips
from incidents.models import Backfill, Incident, RootCause
from ingestion.models import JobRun, JobState
from lakehub.accounts.models import Role, User
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.interval import EVERYTHING
from quality.models import Category
from tests import factories
from tests.factories import HOUR, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    made = FailingDataset()
    factories.feed(made.dataset)
    for copy in made.dataset.copies.all():
        factories.with_table(copy)
    return made


@pytest.fixture
def ana() -> User:
    person = factories.user("ana")
    factories.member(person, factories.team(), Role.ON_CALL)
    return person


def last_text(incident: Incident) -> str:
    return str(incident.events.all()[0].text)


@pytest.mark.parametrize("word", [*RootCause.values, *Backfill.values[1:]])
def test_each_word_is_documented(word: str) -> None:
    assert f"`{word}`" in (Path(settings.BASE_DIR) / "docs" / "incidents.md").read_text()


def test_a_cause_is_one_of_the_list(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    with pytest.raises(Refused, match=r"`replicaton` is no root cause. Did you mean `replication`"):
        actions.annotate(number, {"root_cause": "replicaton"}, actor=ana, now=NOW)
    assert actions.annotate(number, {"root_cause": "code_change"}, actor=ana, now=NOW).root_cause == "code_change"


def test_an_eta_that_has_passed_may_stay_while_something_else_is_said(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    actions.annotate(number, {"eta": NOW + HOUR}, actor=ana, now=NOW)
    changes = {"eta": NOW + HOUR, "backfill": "needed"}
    assert actions.annotate(number, changes, actor=ana, now=NOW + 2 * HOUR).backfill == "needed"
    with pytest.raises(Refused, match="Recovery is expected in the future"):
        actions.annotate(number, {"eta": NOW}, actor=ana, now=NOW + 2 * HOUR)


def test_a_run_is_of_the_same_dataset(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    stray = factories.run(factories.copy_of(factories.dataset("other")))
    with pytest.raises(Refused, match=f"flights has no job run {stray.pk}"):
        actions.annotate(number, {"backfill_run": stray.pk}, actor=ana, now=NOW)
    own = factories.run(factories.copy_of(stage.dataset))
    incident = actions.annotate(number, {"backfill_run": own.pk}, actor=ana, now=NOW)
    assert (incident.backfill, incident.backfill_run) == ("running", own)
    assert last_text(incident) == f"run: {own.pk}; backfill: running."


@pytest.mark.parametrize(
    ("state", "becomes"), [(JobState.SUCCEEDED, "done"), (JobState.FAILED, "needed"), (JobState.RUNNING, "running")]
)
def test_a_backfill_is_what_its_run_became(stage: FailingDataset, ana: User, state: JobState, becomes: str) -> None:
    incident = stage.opened()
    run = backfills.start_backfill(incident.pk, actor="ana", now=NOW)
    JobRun.objects.filter(pk=run.pk).update(state=state)
    backfills.follow_backfills(now=NOW + HOUR)
    incident.refresh_from_db()
    assert incident.backfill == becomes
    assert backfills.follow_backfills(now=NOW + HOUR) == 0


def test_a_backfill_names_what_is_affected_where_most_fails(stage: FailingDataset) -> None:
    stage.fails(DAY_BEFORE)
    stage.fails(DAY_BEFORE, "dc1")
    incident = stage.opened()
    run = backfills.start_backfill(incident.pk, actor="ana", now=NOW)
    assert (run.kind, run.copy.data_center.name) == ("backfill", "dc2")
    assert run.params == {"partitions": ["2026-11-15", "2026-11-16"]}
    incident.refresh_from_db()
    assert (incident.backfill, incident.backfill_run) == ("running", run)
    other = backfills.start_backfill(incident.pk, data_center="dc1", actor="ana", now=NOW)
    assert other.params == {"partitions": ["2026-11-15"]}
    with pytest.raises(NotFound, match="has no copy in `dc3`"):
        backfills.start_backfill(incident.pk, data_center="dc3", actor="ana", now=NOW)


def test_what_is_stale_is_backfilled_up_to_now(stage: FailingDataset) -> None:
    stage.stale(day("2026-11-16").start)
    process_flips(now=NOW)
    incident = Incident.objects.get(category=Category.FRESHNESS)
    run = backfills.start_backfill(incident.pk, actor="ana", now=NOW)
    assert run.params == {"partitions": ["2026-11-16", "2026-11-17"]}


def test_there_is_nothing_to_repair_of_the_whole_table_or_of_what_passed(stage: FailingDataset) -> None:
    whole = stage.opened(EVERYTHING)
    with pytest.raises(Refused, match="affects the whole table"):
        backfills.start_backfill(whole.pk, actor="ana", now=NOW)
    healed = stage.opened(BAD_DAY, category=Category.OTHERS)
    healed.spans.update(ended_at=NOW)
    with pytest.raises(Conflict, match="so there is nothing to repair"):
        backfills.start_backfill(healed.pk, actor="ana", now=NOW)
    assert not JobRun.objects.exists()
