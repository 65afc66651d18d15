from __future__ import annotations

import pytest

from incidents.lifecycle import actions, merge_split, resolution, user_reports
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, IncidentEvent, Message, Span
from incidents.record import transitions
from lakehub.accounts.models import AuditEntry, Role, User
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.outcome import Outcome
from quality.models import Lane, Unit
from tests import factories
from tests.factories import HOUR, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset()


@pytest.fixture
def ana() -> User:
    person = factories.user("ana")
    factories.member(person, factories.team(), Role.ON_CALL)
    return person


def last_event(incident: Incident) -> tuple[str, str, str]:
    event = incident.events.all()[0]
    return event.kind, event.actor, event.text


# Moves


def test_who_acknowledges_has_it(stage: FailingDataset, ana: User) -> None:
    incident = actions.acknowledge(stage.opened().pk, actor=ana, now=NOW)
    assert (incident.state, incident.assignee, incident.acknowledged_at) == ("acknowledged", ana, NOW)
    event = incident.events.all()[0]
    assert (event.kind, event.was, event.becomes, event.actor) == ("acknowledged", "open", "acknowledged", "ana")


def test_an_acknowledgement_can_be_taken_back(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    actions.acknowledge(number, actor=ana, now=NOW)
    incident = actions.release(number, actor=ana, now=NOW)
    assert (incident.state, incident.assignee) == ("open", None)


def test_of_two_who_acknowledge_the_second_learns_who_was_faster(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    actions.acknowledge(number, actor=ana, now=NOW)
    with pytest.raises(
        Conflict, match=r"ana was faster: acknowledged at 2026-11-17 19:32 UTC. Nothing was changed"
    ) as caught:
        actions.acknowledge(number, actor=factories.user("ben"), now=NOW)
    assert "that is acknowledged cannot acknowledge" in str(caught.value)
    assert IncidentEvent.objects.filter(kind="acknowledged").count() == 1


def test_an_action_decided_on_an_old_view_changes_nothing(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    actions.annotate(incident.pk, {"backfill": "running"}, actor=ana, now=NOW)
    with pytest.raises(Conflict, match=r"is not as you saw it. ana was faster: annotated"):
        actions.acknowledge(incident.pk, actor=ana, now=NOW, expected_revision=incident.revision)
    incident.refresh_from_db()
    assert (incident.state, incident.revision) == ("open", 1)


def test_two_writers_that_read_the_same_row_make_one_move(stage: FailingDataset, ana: User) -> None:
    stale = transitions.incident_by_number(stage.opened().pk)
    actions.acknowledge(stale.pk, actor=ana, now=NOW)
    with pytest.raises(Conflict, match="ana was faster"):
        transitions.update_incident(stale, {"title": "mine"})


def test_an_incident_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match="no incident #404"):
        transitions.incident_by_number(404)


# What is known


def test_annotations_are_kept_and_told(stage: FailingDataset, ana: User) -> None:
    eta = NOW + HOUR
    changes = {"eta": eta, "root_cause": "replication", "backfill": "running"}
    incident = actions.annotate(stage.opened().pk, changes, actor=ana, now=NOW, text="Run 9127.")
    assert (incident.eta, incident.root_cause, incident.backfill) == (eta, "replication", "running")
    text = "ETA: 2026-11-17 20:32 UTC; root cause: replication; backfill: running. Run 9127."
    assert last_event(incident) == ("annotated", "ana", text)


def test_annotating_nothing_new_leaves_no_event(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    actions.annotate(number, {"backfill": ""}, actor=ana, now=NOW)
    assert not IncidentEvent.objects.filter(kind="annotated").exists()


def test_an_annotation_that_makes_no_sense_is_refused_for_each_field(stage: FailingDataset, ana: User) -> None:
    with pytest.raises(Refused) as caught:
        actions.annotate(stage.opened().pk, {"eta": NOW, "backfill": "runing", "cause": "?"}, actor=ana, now=NOW)
    assert set(caught.value.fields) == {"eta", "backfill", "cause"}
    assert "Did you mean `running`?" in caught.value.fields["backfill"]


def test_comments_are_welcome_on_resolved_incidents_too(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    actions.comment(incident.pk, " It was compaction. ", actor=ana, now=NOW + HOUR)
    assert last_event(incident) == ("commented", "ana", "It was compaction.")
    with pytest.raises(Conflict, match=r"was resolved at 2026-11-17 20:32 UTC. Comment on it instead"):
        actions.snooze(incident.pk, NOW + 9 * HOUR, actor=ana, now=NOW + HOUR)


def test_it_is_assigned_to_who_may_take_it(stage: FailingDataset, ana: User) -> None:
    number = stage.opened().pk
    assert actions.assign(number, "ana", actor=ana, now=NOW).assignee == ana
    assert actions.assign(number, "", actor=ana, now=NOW).assignee is None
    with pytest.raises(Refused, match=r"nobody called `anna`. Did you mean `ana`"):
        actions.assign(number, "anna", actor=ana, now=NOW)
    factories.user("zoe")
    with pytest.raises(Refused, match="zoe has no part in team flight-ops"):
        actions.assign(number, "zoe", actor=ana, now=NOW)


def test_a_snooze_ends_in_the_future(stage: FailingDataset, ana: User) -> None:
    with pytest.raises(Refused, match="A snooze ends in the future"):
        actions.snooze(stage.opened().pk, NOW, actor=ana, now=NOW)


def test_a_rerun_makes_the_failing_units_due_before_all_others(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    healthy = stage.unit(DAY_BEFORE)
    assert actions.rerun(incident.pk, actor=ana, now=NOW) == 1
    unit = Unit.objects.get(pk=incident.spans.get().unit_id)
    assert (unit.due_at, unit.lane) == (NOW, Lane.REQUESTED)
    assert Unit.objects.get(pk=healthy.pk).due_at is None
    assert last_event(incident) == ("rerun", "ana", "1 unit")


# Resolving by force


def test_a_false_positive_is_waived_until_it_passes(stage: FailingDataset) -> None:
    incident = stage.opened()
    resolution.resolve_by_force(
        incident.pk,
        resolution="false_positive",
        false_positive="wrong_test",
        why="Counts holds.",
        actor="ana",
        now=NOW + HOUR,
    )
    incident.refresh_from_db()
    unit = Unit.objects.get()
    assert (incident.state, incident.resolution, incident.false_positive) == (
        "resolved",
        "false_positive",
        "wrong_test",
    )
    assert (unit.verdict, unit.waiver, incident.spans.get().ended_at) == ("pass", "false_positive", NOW + HOUR)
    process_flips(now=NOW + HOUR)
    stage.see(unit, Outcome.FAIL, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    assert Incident.objects.count() == 1
    stage.passes(unit, at=NOW + 3 * HOUR)
    stage.see(unit, Outcome.FAIL, at=NOW + 4 * HOUR)
    process_flips(now=NOW + 4 * HOUR)
    assert Incident.objects.count() == 2
    assert AuditEntry.objects.get(action="resolve").subject == f"incident:{incident.pk}"


def test_an_accepted_defect_stays_a_warning(stage: FailingDataset) -> None:
    resolution.resolve_by_force(stage.opened().pk, resolution="accepted", why="Gone for good.", actor="ana", now=NOW)
    assert Unit.objects.get().verdict == "warn"


def test_a_unit_that_passed_a_moment_ago_is_not_waived(stage: FailingDataset) -> None:
    incident = stage.opened()
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    resolution.resolve_by_force(incident.pk, resolution="accepted", why="So be it.", actor="ana", now=NOW + HOUR)
    unit = Unit.objects.get()
    assert (unit.waiver, unit.verdict) == ("", "pass")


def test_force_needs_a_reason_and_a_kind_that_exist(stage: FailingDataset) -> None:
    number = stage.opened().pk
    with pytest.raises(Refused) as caught:
        resolution.resolve_by_force(number, resolution="false_positiv", why="", actor="ana", now=NOW)
    assert "Did you mean `false_positive`?" in caught.value.fields["resolution"]
    assert "Say why" in caught.value.fields["why"]
    with pytest.raises(Refused, match=r"`wrong` is no kind of false positive"):
        resolution.resolve_by_force(
            number, resolution="false_positive", false_positive="wrong", why="x", actor="ana", now=NOW
        )
    assert Unit.objects.get().waiver == ""


def test_a_forced_resolution_can_be_taken_back(stage: FailingDataset) -> None:
    incident = stage.opened()
    resolution.resolve_by_force(incident.pk, resolution="accepted", why="Too hasty.", actor="ana", now=NOW)
    process_flips(now=NOW)
    resolution.undo_resolution(incident.pk, actor="ben", now=NOW + HOUR, why="It matters.")
    process_flips(now=NOW + HOUR)
    incident.refresh_from_db()
    span = Span.objects.get()
    assert (incident.state, incident.resolution, span.ended_at, Unit.objects.get().verdict) == (
        "open",
        "",
        None,
        "fail",
    )
    assert Incident.objects.count() == 1


def test_what_is_taken_back_is_rerun(stage: FailingDataset) -> None:
    incident = stage.opened()
    resolution.resolve_by_force(incident.pk, resolution="accepted", why="Too hasty.", actor="ana", now=NOW)
    Unit.objects.update(due_at=None)  # what is waived is not rerun
    resolution.undo_resolution(incident.pk, actor="ben", now=NOW + HOUR)
    assert (Unit.objects.get().due_at, Unit.objects.get().lane) == (NOW + HOUR, Lane.DUE)


def test_what_passes_by_now_is_not_reopened(stage: FailingDataset) -> None:
    incident = stage.opened()
    resolution.resolve_by_force(incident.pk, resolution="accepted", why="Too hasty.", actor="ana", now=NOW)
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    with pytest.raises(Conflict, match=r"Nothing of #.* fails any more"):
        resolution.undo_resolution(incident.pk, actor="ben", now=NOW + HOUR)
    incident.refresh_from_db()
    assert incident.state == "resolved"


def test_what_healed_by_itself_is_not_reopened_by_hand(stage: FailingDataset) -> None:
    incident = stage.opened()
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    with pytest.raises(Conflict, match="was not resolved by force"):
        resolution.undo_resolution(incident.pk, actor="ben", now=NOW + HOUR)


# Merging and splitting


def test_a_merge_moves_the_spans_and_closes_the_other(stage: FailingDataset) -> None:
    incident = stage.opened()
    other = stage.opened(day("2026-11-02"))
    assert incident.pk != other.pk
    merge_split.merge_incidents(incident.pk, other.pk, actor="ana", now=NOW)
    other.refresh_from_db()
    assert (incident.spans.count(), other.spans.count()) == (2, 0)
    assert (other.state, other.resolution, other.merged_into) == ("resolved", "merged", incident)


def test_what_is_merged_or_split_off_has_been_open_since_it_was(stage: FailingDataset, ana: User) -> None:
    late = stage.opened(at=NOW + HOUR)
    early = stage.opened(day("2026-11-02"), at=NOW + 2 * HOUR)
    Incident.objects.filter(pk=early.pk).update(opened_at=NOW)
    actions.acknowledge(late.pk, actor=ana, now=NOW + 3 * HOUR)
    merge_split.merge_incidents(late.pk, early.pk, actor="ana", now=NOW + 4 * HOUR)
    late.refresh_from_db()
    assert late.opened_at == NOW
    made = merge_split.split_incident(
        late.pk,
        [Unit.objects.get(start=BAD_DAY.start).pk],
        actor="ana",
        now=NOW + 5 * HOUR,
        expected_revision=late.revision,
    )
    assert (made.opened_at, made.state, made.acknowledged_at) == (NOW, "acknowledged", NOW + 3 * HOUR)


def test_a_split_leaves_a_failing_unit_on_both_sides(stage: FailingDataset) -> None:
    stage.fails(DAY_BEFORE)
    incident = stage.opened()
    unit = Unit.objects.get(start=BAD_DAY.start)
    made = merge_split.split_incident(incident.pk, [unit.pk], actor="ana", now=NOW)
    assert [span.unit_id for span in made.spans.all()] == [unit.pk]
    assert incident.spans.count() == 1
    with pytest.raises(Refused, match="0 stay, 1 go"):
        merge_split.split_incident(made.pk, [unit.pk], actor="ana", now=NOW)


def test_both_sides_of_a_merge_and_a_split_are_in_the_audit_log(stage: FailingDataset) -> None:
    incident, other = stage.opened(), stage.opened(day("2026-11-02"))
    merge_split.merge_incidents(incident.pk, other.pk, actor="ana", now=NOW)
    made = merge_split.split_incident(incident.pk, [Unit.objects.get(start=BAD_DAY.start).pk], actor="ben", now=NOW)
    lines = AuditEntry.objects.order_by("pk").values_list("actor", "action", "subject", "detail__text")
    assert list(lines) == [
        ("ana", "resolve", f"incident:{other.pk}", f"merged into #{incident.pk}"),
        ("ana", "merge", f"incident:{incident.pk}", f"#{other.pk} into this one"),
        ("ben", "split off", f"incident:{made.pk}", f"split from #{incident.pk}"),
        ("ben", "split", f"incident:{incident.pk}", f"1 units to #{made.pk}"),
    ]


# Users' reports


def report(stage: FailingDataset, by: User) -> Incident:
    return user_reports.file_report(
        stage.dataset, "consistency", BAD_DAY, text="Delays look odd.", reporter=by, now=NOW
    )


def test_a_report_that_an_incident_explains_is_matched_and_ends_with_it(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    reported = report(stage, ana)
    assert (reported.state, reported.report.matched_incident) == ("matched", incident)
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    reported.refresh_from_db()
    reported.report.refresh_from_db()
    assert (reported.state, reported.resolution, reported.report.fixed_at) == ("resolved", "auto", NOW + HOUR)


def test_a_report_that_a_false_positive_explained_waits_for_the_producer(stage: FailingDataset, ana: User) -> None:
    incident = stage.opened()
    reported = report(stage, ana)
    resolution.resolve_by_force(
        incident.pk, resolution="false_positive", false_positive="wrong_sla", why="No harm.", actor="ben", now=NOW
    )
    reported.refresh_from_db()
    assert reported.state == "waiting"


def test_a_report_is_put_to_the_producer_who_acknowledges_and_fixes(stage: FailingDataset, ana: User) -> None:
    reported = report(stage, ana)
    assert (reported.state, Message.objects.get().occasion) == ("waiting", "reported")
    actions.acknowledge(reported.pk, actor=ana, now=NOW)
    user_reports.declare_fixed(reported.pk, why="Backfilled.", actor=ana, now=NOW + HOUR)
    reported.refresh_from_db()
    assert (reported.state, reported.resolution, reported.report.fixed_at) == ("resolved", "declared_fixed", NOW + HOUR)


def test_a_rejected_report_can_be_disputed(stage: FailingDataset, ana: User) -> None:
    reported = report(stage, ana)
    user_reports.reject_report(reported.pk, why="As designed.", actor=ana, now=NOW)
    assert user_reports.dispute_report(reported.pk, why="It is not.", actor=ana, now=NOW).state == "waiting"
    user_reports.reject_report(reported.pk, why="It is.", actor=ana, now=NOW)
    assert user_reports.declare_fixed(reported.pk, why="", actor=ana, now=NOW).resolution == "rejected"


def test_a_report_says_what_and_in_which_category(stage: FailingDataset, ana: User) -> None:
    with pytest.raises(Refused) as caught:
        user_reports.file_report(
            stage.dataset, "duplicate", BAD_DAY, text=" ", reporter=ana, now=NOW, occurred_at=NOW + HOUR
        )
    assert set(caught.value.fields) == {"category", "text", "occurred_at"}
    assert not Incident.objects.exists()
