"""What the log of the gate does with a question that the database does not take."""

from __future__ import annotations

import pytest
from django.db import DataError

from incidents.gate import question_log as gate_log
from incidents.models import GateQuestion
from tests import factories as make

pytestmark = pytest.mark.django_db


def question(consumer: str) -> GateQuestion:
    copy = make.copy_of(make.dataset(f"d{len(consumer)}", copies=("dc1",)))
    return GateQuestion(
        at=make.NOW,
        consumer=consumer,
        request_id=consumer,
        copy=copy,
        start=make.NOW,
        end=make.NOW + make.DAY,
        verdict="pass",
        allowed=True,
        would_allow=True,
    )


def test_it_keeps_nothing_behind_it_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes any length; PostgreSQL does not."""
    really = gate_log.save_questions

    def keep(questions: list[GateQuestion]) -> None:
        if any(len(kept_question.consumer) > 63 for kept_question in questions):
            raise DataError("value too long")
        really(questions)

    monkeypatch.setattr(gate_log, "save_questions", keep)
    gate_log.write_batch([question("x" * 64), question("etl")], {gate_log.QUESTIONS_REFUSED: 2})
    assert [kept_question.consumer for kept_question in GateQuestion.objects.all()] == ["etl"]
    assert (gate_log.counter_value(gate_log.QUESTIONS_DROPPED), gate_log.counter_value(gate_log.QUESTIONS_REFUSED)) == (
        1,
        2,
    )
