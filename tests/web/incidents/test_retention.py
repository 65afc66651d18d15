from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.gate import question_log as gate_log
from incidents.lifecycle import retention
from incidents.models import BulkAction, Digest, GateQuestion, Message
from tests import factories
from tests.factories import DAY, MINUTE, NOW

pytestmark = pytest.mark.django_db


def test_questions_older_than_the_history_go() -> None:
    copy = factories.copy_of(factories.dataset())
    for age in (401, 399, 0):
        facts = {"start": NOW - DAY, "end": NOW, "verdict": "pass", "allowed": True}
        GateQuestion.objects.create(at=NOW - age * DAY, consumer="etl", request_id=str(age), copy=copy, **facts)
    assert retention.prune_questions(now=NOW, retention=timedelta(days=400)) == 1
    assert set(GateQuestion.objects.values_list("request_id", flat=True)) == {"399", "0"}


def test_a_question_that_is_still_asked_stays_with_its_younger_times() -> None:
    facts = {
        "copy": factories.copy_of(factories.dataset()),
        "start": NOW - DAY,
        "end": NOW,
        "verdict": "pass",
        "allowed": True,
    }
    for age in (402, 401, 399):
        gate_log.save_questions([GateQuestion(at=NOW - age * DAY, consumer="etl", request_id="the job", **facts)])
    assert retention.prune_questions(now=NOW, retention=timedelta(days=400)) == 0
    assert [repeated.at for repeated in GateQuestion.objects.get().again.all()] == [NOW - 399 * DAY]
    assert retention.prune_questions(now=NOW, retention=timedelta(days=398)) == 1


def test_digests_that_went_out_go_and_what_they_listed_stays() -> None:
    team = factories.team()
    made = {"team": team, "channel": "email", "address": "ops@example.org", "subject": "", "body": "", "due_at": NOW}
    listed = factories.message(factories.incident(factories.dataset()))
    for age, state in ((31, "sent"), (31, "pending"), (29, "sent")):
        digest = Digest.objects.create(state=state, created_at=NOW - age * DAY, **made)
        Message.objects.filter(pk=listed.pk, digest=None).update(digest=digest)
    assert retention.prune_digests(now=NOW, retention=timedelta(days=30)) == 1
    assert Digest.objects.count() == 2
    listed.refresh_from_db()
    assert listed.digest is None


def test_what_cannot_be_undone_any_more_goes() -> None:
    incident, actor = factories.incident(factories.dataset()), factories.user()
    for age in (11, 10, 9):
        bulk = BulkAction.objects.create(actor=actor, action="snooze", at=NOW - age * MINUTE)
        bulk.lines.create(incident=incident, revision=1)
    assert retention.prune_bulk_actions(now=NOW) == 1
    assert BulkAction.objects.count() == 2
