from __future__ import annotations

from datetime import timedelta

import pytest

from incidents import retention
from incidents.models import GateQuestion
from tests import factories
from tests.factories import DAY, NOW

pytestmark = pytest.mark.django_db


def test_questions_older_than_the_history_go() -> None:
    copy = factories.copy_of(factories.dataset())
    for age in (401, 399, 0):
        facts = {"start": NOW - DAY, "end": NOW, "verdict": "pass", "allowed": True}
        GateQuestion.objects.create(at=NOW - age * DAY, consumer="etl", request_id=str(age), copy=copy, **facts)
    assert retention.forget_questions(now=NOW, kept=timedelta(days=400)) == 1
    assert set(GateQuestion.objects.values_list("request_id", flat=True)) == {"399", "0"}
