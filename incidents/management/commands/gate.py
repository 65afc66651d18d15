"""`manage.py gate flights 2026-11-16 2026-11-17 --dc dc2 --consumer etl`"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rest_framework.renderers import JSONRenderer

from incidents.api.serializers.gate import answer_to_json
from incidents.gate import answer as gate
from incidents.gate import copies
from incidents.record.texts import data_range_text
from lakehub import wiring
from lakehub.catalog.request_times import parse_range
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.output.terminal import printable

EXIT_BLOCKED = 3
"""The exit code; 1 and 2 are errors of the question."""


class Command(BaseCommand):
    help = "Asks the gate. Ends with 0 where the range may be read, with 3 where the consumer's policy blocks it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("start", help="2026-11-16 in the dataset's zone, or a time with its offset")
        parser.add_argument("end", help="not included")
        parser.add_argument("--dc", default="", help="the data center; needed where there are several copies")
        parser.add_argument("--consumer", default="operator", help="whose policy decides")
        parser.add_argument("--request-id", default="", help="counts the question once; without it, it is not kept")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str, start: str, end: str, **options: Any) -> None:
        try:
            copy = copies.find_copy(dataset, options["dc"])
            data_range = parse_range(start, end, copy.dataset)
        except (NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        request_id = options["request_id"]
        question = gate.CopyQuestion(dataset, data_range, options["consumer"], copy.data_center.name, request_id)
        reply = gate.ask_gate(question, now=wiring.clock.now(), record=bool(request_id), copy=copy)
        self.stdout.write(_as_json(reply) if options["json"] else _as_lines(reply))
        if not reply.answer.allowed:
            sys.exit(EXIT_BLOCKED)


def _as_json(reply: gate.GateReply) -> str:
    # Written again in ASCII: as a renderer writes it, it may hold characters that a terminal obeys.
    return json.dumps(json.loads(JSONRenderer().render(answer_to_json(reply))))


def _as_lines(reply: gate.GateReply) -> str:
    answer, dataset = reply.answer, reply.copy.dataset
    wait = answer.retry_after(now=reply.at)
    may = "may be read" if answer.allowed else f"is blocked, ask again in {wait}"
    lines = [
        f"{answer.verdict}: {dataset.name} in {reply.copy.data_center} over {data_range_text(reply.question.wanted, dataset)} {may}"
    ]
    if pause := copies.pause_of(reply.copy):
        lines.append(
            f"  Its ingestion is paused{f' since {pause.since:%Y-%m-%d %H:%M} UTC' if pause.since else ''}: {printable(pause.why)}"
        )
    for cause in answer.causes:
        over = ", ".join(data_range_text(piece, dataset) for piece in cause.ranges)
        incident = f", incident #{cause.incident}" if cause.incident else ""
        lines.append(f"  {cause.verdict:<8} {cause.reason:<16} {cause.test or 'report'} over {over}{incident}")
    return "\n".join(lines)
