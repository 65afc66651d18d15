"""Lakehub's own jobs and the gate: all inputs of a run in one question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from incidents.gate import answer as gate
from incidents.gate import copies
from incidents.gate import question_log as gate_log
from ingestion.ports import InputDecision, JobInput


def input_gate(inputs: Sequence[JobInput], *, consumer: str, request_id: str, now: datetime) -> Sequence[InputDecision]:
    """The port by which jobs ask about their inputs. Raises NotFound."""
    known_copies = copies.find_copies({job_input.dataset for job_input in inputs}, consumer, now=now)
    questions = [
        gate.ResolvedQuestion(
            gate.CopyQuestion(job_input.dataset, job_input.data_range, consumer, job_input.data_center, request_id),
            copies.choose_copy(job_input.dataset, job_input.data_center, known_copies),
        )
        for job_input in inputs
    ]
    replies = gate.answer_questions(questions, now=now)
    gate_log.save_questions([gate.question_to_row(reply) for reply in replies])
    return [_answer(job_input, reply) for job_input, reply in zip(inputs, replies, strict=True)]


def _answer(job_input: JobInput, reply: gate.GateReply) -> InputDecision:
    answer = reply.answer
    why = ", ".join(dict.fromkeys(f"{cause.verdict}: {cause.reason}" for cause in answer.blockers))
    numbers = sorted({cause.incident for cause in answer.blockers if cause.incident is not None})
    return InputDecision(job_input, answer.allowed, answer.verdict.value, why, tuple(numbers), answer.retry_at)
