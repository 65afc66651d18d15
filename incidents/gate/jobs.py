"""Lakehub's own jobs and the gate: all inputs of a run in one question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from incidents.gate import answers as gate
from incidents.gate import log as gate_log
from ingestion.ports import InputAnswer, WantedInput


def input_gate(
    inputs: Sequence[WantedInput], *, consumer: str, request_id: str, now: datetime
) -> Sequence[InputAnswer]:
    """The port by which jobs ask about their inputs. Raises NotFound."""
    known = gate.found_copies({one.dataset for one in inputs}, now=now)
    asked = [
        gate.Asked(
            gate.Question(one.dataset, one.over, consumer, one.data_center, request_id),
            gate.chosen(one.dataset, one.data_center, known),
        )
        for one in inputs
    ]
    replies = gate.answered(asked, now=now)
    gate_log.keep([gate.question_row(reply) for reply in replies])
    return [_answer(wanted, reply) for wanted, reply in zip(inputs, replies, strict=True)]


def _answer(wanted: WantedInput, reply: gate.Reply) -> InputAnswer:
    answer = reply.answer
    why = ", ".join(dict.fromkeys(f"{cause.verdict}: {cause.reason}" for cause in answer.blockers))
    numbers = sorted({cause.incident for cause in answer.blockers if cause.incident is not None})
    return InputAnswer(wanted, answer.allowed, answer.verdict.value, why, tuple(numbers), answer.retry_at)
