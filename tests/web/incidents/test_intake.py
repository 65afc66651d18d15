from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents import tasks
from incidents.lifecycle import intake
from incidents.lifecycle.correlate import Correlator
from incidents.lifecycle.intake import process_flips, update_stale_ranges
from incidents.lifecycle.resolution import close_offboarded
from incidents.models import Incident, IncidentEvent, Message, Span
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome, Verdict
from quality.models import Category, Flip, Unit
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db


def events(incident: Incident) -> list[str]:
    return [event.kind for event in incident.events.order_by("pk")]


def test_a_failure_opens_an_incident_with_its_range_its_life_and_a_message() -> None:
    stage = FailingDataset()
    unit = stage.fails(observed=0.9898, threshold="> 99.9%", detail={"observed": "98.98%", "behind": "975 of 985"})
    assert process_flips(now=NOW) == 1
    incident = Incident.objects.get()
    span = incident.spans.get()
    assert (span.unit_id, span.start, span.end, span.began_at) == (unit.pk, BAD_DAY.start, BAD_DAY.end, NOW)
    assert incident.title == "flights: Rows as in dc1: 98.98% (975 of 985), needs > 99.9% (dc2, 2026-11-16)"
    assert events(incident) == ["opened", "span_opened"]
    assert Message.objects.get().subject == f"[opened] {incident.title}"


def test_a_life_begins_at_the_first_failure() -> None:
    stage = FailingDataset(sustain=timedelta(hours=2))
    unit = stage.fails(at=NOW)
    assert process_flips(now=NOW) == 1
    assert not Incident.objects.exists()
    stage.see(unit, Outcome.FAIL, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    assert Incident.objects.get().spans.get().began_at == NOW


def test_a_second_delivery_changes_nothing() -> None:
    stage = FailingDataset()
    stage.fails()
    assert [process_flips(now=NOW), process_flips(now=NOW)] == [1, 0]
    Flip.objects.update(claimed_at=None)
    process_flips(now=NOW)
    assert (Incident.objects.count(), Span.objects.count(), Message.objects.count()) == (1, 1, 1)


def test_neighbours_join_and_far_days_open_their_own() -> None:
    stage = FailingDataset()
    for over in (BAD_DAY, DAY_BEFORE, day("2026-11-02")):
        stage.fails(over)
    process_flips(now=NOW)
    assert sorted(incident.spans.count() for incident in Incident.objects.all()) == [1, 2]
    assert Message.objects.count() == 2


def days_of_a_hole(first: str, count: int) -> list[Interval]:
    return [day(f"{date.fromisoformat(first) + timedelta(days=number)}") for number in range(count)]


def test_a_hole_of_many_days_is_one_incident_in_whatever_order_its_days_were_tested() -> None:
    stage = FailingDataset()
    days = days_of_a_hole("2026-10-01", 40)
    for over in [*days[::4], *days[1::4], *days[2::4], *days[3::4]]:
        stage.fails(over)
    process_flips(now=NOW)
    assert [incident.spans.count() for incident in Incident.objects.all()] == [40]
    assert Message.objects.count() == 1


def test_a_hole_that_is_found_batch_by_batch_is_one_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims go from the oldest partition to the newest; within one the scans decide."""
    stage = FailingDataset()
    days = days_of_a_hole("2026-10-01", 40)
    for batch in range(4):
        claimed = days[batch * 10 : batch * 10 + 10]
        for over in [*claimed[::3], *claimed[1::3], *claimed[2::3]]:
            stage.fails(over, at=NOW + batch * MINUTE)
        if batch != 1:
            process_flips(now=NOW + batch * MINUTE)
    assert [incident.spans.count() for incident in Incident.objects.all()] == [40]


def test_the_flips_of_one_unit_stay_in_their_order_when_clocks_disagree() -> None:
    stage = FailingDataset()
    unit = stage.fails(at=NOW)
    stage.passes(unit, at=NOW + MINUTE)
    Flip.objects.filter(becomes=Verdict.PASS).update(at=NOW - HOUR)
    process_flips(now=NOW + MINUTE)
    assert Incident.objects.get().state == "resolved"


def test_categories_do_not_mix() -> None:
    stage = FailingDataset()
    stage.fails()
    stage.fails(category=Category.DUPLICATES)
    process_flips(now=NOW)
    assert set(Incident.objects.values_list("category", flat=True)) == {Category.CONSISTENCY, Category.DUPLICATES}


def test_a_pass_ends_the_span_and_the_last_one_resolves_the_incident() -> None:
    stage = FailingDataset()
    unit, other = stage.fails(), stage.fails(DAY_BEFORE)
    process_flips(now=NOW)
    stage.passes(unit, at=NOW + HOUR)
    process_flips(now=NOW + HOUR + MINUTE)
    incident = Incident.objects.get()
    assert (incident.state, incident.spans.get(unit=unit).ended_at) == ("open", NOW + HOUR)
    stage.passes(other, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    incident.refresh_from_db()
    assert (incident.state, incident.resolution, incident.resolved_at) == ("resolved", "auto", NOW + 2 * HOUR)
    assert events(incident) == ["opened", "span_opened", "span_closed", "span_closed", "resolved"]


def test_a_pass_of_a_run_that_a_person_asked_for_says_so() -> None:
    stage = FailingDataset()
    incident = stage.opened()
    stage.passes(Unit.objects.get(), at=NOW + HOUR, trigger="manual")
    process_flips(now=NOW + HOUR)
    incident.refresh_from_db()
    assert incident.resolution == "manual_rerun"


@pytest.mark.parametrize(("later", "incidents"), [(23 * HOUR, 1), (25 * HOUR, 2)])
def test_a_unit_that_comes_back_within_a_day_reopens_its_incident(later: timedelta, incidents: int) -> None:
    stage = FailingDataset()
    stage.opened()
    unit = Unit.objects.get()
    stage.passes(unit, at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    stage.see(unit, Outcome.FAIL, at=NOW + HOUR + later)
    process_flips(now=NOW + HOUR + later)
    first = Incident.objects.order_by("pk")[0]
    assert (Incident.objects.count(), first.state) == (incidents, "open" if incidents == 1 else "resolved")
    assert Span.objects.count() == 2


def test_an_incident_that_came_and_went_between_two_looks_is_resolved_and_told_to_nobody() -> None:
    stage = FailingDataset()
    unit = stage.fails()
    stage.passes(unit, at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    incident = Incident.objects.get()
    assert (incident.state, incident.spans.get().ended_at) == ("resolved", NOW + MINUTE)
    assert incident.title.startswith("flights: Rows as in dc1")
    assert not Message.objects.exists()


def test_a_unit_that_came_back_between_two_looks_stays_in_its_incident() -> None:
    stage = FailingDataset()
    unit = stage.fails()
    stage.passes(unit, at=NOW + MINUTE)
    stage.see(unit, Outcome.FAIL, at=NOW + 2 * MINUTE)
    process_flips(now=NOW + 2 * MINUTE)
    incident = Incident.objects.get()
    assert (incident.state, incident.spans.count()) == ("open", 2)
    stage.passes(unit, at=NOW + 3 * MINUTE)
    stage.see(unit, Outcome.FAIL, at=NOW + 4 * MINUTE)
    process_flips(now=NOW + 4 * MINUTE)
    incident.refresh_from_db()
    assert (incident.state, incident.spans.count(), Incident.objects.count()) == ("open", 3, 1)
    assert events(incident).count("resolved") == 0


def test_stale_data_is_affected_from_the_boundary_on_which_moves_until_it_ends() -> None:
    stage = FailingDataset()
    unit = stage.stale(BAD_DAY.start)
    process_flips(now=NOW)
    span = Span.objects.get()
    assert (span.start, span.end.year) == (BAD_DAY.start, 9999)
    Unit.objects.filter(pk=unit.pk).update(affected_from=BAD_DAY.end)
    update_stale_ranges()
    assert Span.objects.get().start == BAD_DAY.end
    stage.passes(unit, at=NOW + HOUR)
    Unit.objects.filter(pk=unit.pk).update(affected_from=BAD_DAY.end + DAY)
    process_flips(now=NOW + HOUR)
    update_stale_ranges()
    assert Span.objects.get().start == BAD_DAY.end


def test_an_off_boarded_dataset_leaves_no_open_incident() -> None:
    stage = FailingDataset()
    incident = stage.opened()
    stage.dataset.offboarded_at = NOW + HOUR
    stage.dataset.save()
    close_offboarded(now=NOW + HOUR)
    incident.refresh_from_db()
    assert (incident.resolution, incident.resolved_at) == ("offboarded", NOW + HOUR)
    assert not Span.objects.filter(ended_at=None).exists()


def test_each_look_of_a_worker_also_moves_what_is_stale_and_closes_what_is_off_boarded() -> None:
    stage, gone = FailingDataset(), factories.dataset("weather", offboarded_at=NOW)
    unit = stage.stale(BAD_DAY.start)
    closed = factories.incident(gone, Category.DUPLICATES)
    process_flips(now=NOW)
    Unit.objects.filter(pk=unit.pk).update(affected_from=BAD_DAY.end)
    tasks.process_flips()
    closed.refresh_from_db()
    assert (Span.objects.get().start, closed.resolution) == (BAD_DAY.end, "offboarded")


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_dies_halfway_leaves_everything_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = FailingDataset()
    stage.fails()
    settle = Correlator.write_changes
    monkeypatch.setattr(Correlator, "write_changes", lambda ledger: _die())
    with pytest.raises(SystemExit, match="killed"):
        process_flips(now=NOW)
    assert (Incident.objects.count(), Flip.objects.filter(claimed_at=None).count()) == (0, 1)
    monkeypatch.setattr(Correlator, "write_changes", settle)
    process_flips(now=NOW)
    assert (Incident.objects.count(), Message.objects.count()) == (1, 1)


def test_a_dataset_that_cannot_be_taken_in_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = FailingDataset()
    stage.fails()
    other = factories.test(factories.dataset("weather"), Category.DUPLICATES)
    failed = factories.unit(other, over=BAD_DAY)
    Flip.objects.create(unit=failed, was="pass", becomes="fail", at=NOW, failing_since=NOW)
    settle = Correlator.write_changes

    def settle_but_flights(ledger: Correlator) -> None:
        if ledger.dataset == stage.dataset:
            raise ValueError("no title for this incident")
        settle(ledger)

    monkeypatch.setattr(Correlator, "write_changes", settle_but_flights)
    assert process_flips(now=NOW) == 1
    assert [incident.dataset.name for incident in Incident.objects.all()] == ["weather"]
    assert Flip.objects.get(claimed_at=None).unit.test.dataset == stage.dataset


def _die() -> None:
    raise SystemExit("killed")


def test_looking_when_there_is_nothing_takes_a_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert process_flips(now=NOW) == 0
    assert len(queries) == 1


def test_many_partitions_that_fail_at_once_are_one_incident_and_one_message() -> None:
    stage = FailingDataset()
    for number in range(1, 15):
        stage.fails(day(f"2026-11-{number:02}"))
    assert intake.process_flips(now=NOW) == 14
    assert (Incident.objects.count(), Message.objects.count()) == (1, 1)
    assert IncidentEvent.objects.count() == 2
    assert "and 13 more" in Incident.objects.get().title


def test_ten_times_the_failures_take_no_more_queries() -> None:
    queries = [_queries_of_failures_and_passes(count, name) for count, name in ((10, "few"), (100, "many"))]
    assert queries[0] == queries[1]


def _queries_of_failures_and_passes(count: int, name: str) -> tuple[int, int]:
    test = factories.test(factories.dataset(name), Category.DUPLICATES)
    over = (Interval(BAD_DAY.start - n * DAY, BAD_DAY.start - n * DAY + DAY) for n in range(count))
    units = [factories.unit(test, over=data, verdict=Verdict.FAIL) for data in over]
    counts = []
    for was, becomes in (("pass", "fail"), ("fail", "pass")):
        Flip.objects.bulk_create(
            Flip(unit=unit, was=was, becomes=becomes, at=NOW, failing_since=NOW - DAY) for unit in units
        )
        with CaptureQueriesContext(connection) as queries:
            assert process_flips(now=NOW) == count
        counts.append(len(queries))
    assert (Incident.objects.get(dataset__name=name).state, Span.objects.filter(ended_at=None).count()) == (
        "resolved",
        0,
    )
    return counts[0], counts[1]
