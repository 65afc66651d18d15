"""The gate over REST: may I read this dataset over this time range now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import gate, gate_log
from incidents.api.common import person, valid
from incidents.gate import Asked, Question, Reply
from incidents.shapes import gate as shapes
from lakehub import wiring
from lakehub.accounts.models import Token
from lakehub.catalog.instants import wanted_range
from lakehub.kernel.errors import Refused

MOST_INPUTS = 100
LONGEST_ID = 100


class Gate(APIView):
    """May I read this dataset over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:read"}

    @extend_schema(
        parameters=[
            OpenApiParameter("dataset", str, required=True),
            OpenApiParameter(
                "from", str, required=True, description="2026-11-16 in the dataset's zone, or a time with offset."
            ),
            OpenApiParameter("to", str, required=True, description="Not included."),
            OpenApiParameter("dc", str, description="The data center; the token's, if not given."),
            OpenApiParameter("request_id", str, description="Names the job or query: it is counted once."),
        ],
        responses=shapes.AnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Verdict, reasons, allow or block by the policy of the token's consumer, and when to ask again."""
        asked = {name: request.query_params.get(name, "") for name in ("dataset", "from", "to", "dc")}
        if not asked["dataset"]:
            raise Refused.because({"dataset": "Say which `dataset`."})
        (reply,) = ask_all(request, [asked], request.query_params.get("request_id", ""), now=wiring.clock.now())
        return Response(shapes.answer_of(reply))

    @extend_schema(request=shapes.InputsSerializer, responses=shapes.AnswersSerializer)
    def post(self, request: Request) -> Response:
        """All the inputs of a job at once: allowed where each of them is."""
        said = valid(shapes.InputsSerializer, request)
        if len(said["inputs"]) > MOST_INPUTS:
            raise Refused(f"{len(said['inputs'])} inputs are too many for one question: ask for {MOST_INPUTS} at most.")
        replies = ask_all(request, said["inputs"], said["request_id"], now=wiring.clock.now())
        return Response(shapes.answers_of(replies))


def ask_all(request: Request, asked: Sequence[Mapping[str, Any]], request_id: str, *, now: datetime) -> list[Reply]:
    """Answers the questions and has them kept. Raises NotFound, Refused."""
    if len(request_id) > LONGEST_ID:
        raise Refused.because(
            {"request_id": f"A request id of {len(request_id)} characters: use {LONGEST_ID} at most."}
        )
    known = gate.found_copies([one["dataset"] for one in asked], now=now)
    consumer, home = consumer_of(request), home_of(request)
    questions = []
    for one in asked:
        found = gate.chosen(one["dataset"], one["dc"] or home, known)
        wanted = wanted_range(one["from"], one["to"], found.copy.dataset)
        center = found.copy.data_center.name
        questions.append(Asked(Question(one["dataset"], wanted, consumer, center, request_id), found))
    replies = gate.answered(questions, now=now)
    gate_log.LOG.put(map(gate.question_row, replies))
    return replies


def consumer_of(request: Request) -> str:
    """The token's, never a parameter; a person at the browser asks as themselves."""
    return request.auth.consumer if isinstance(request.auth, Token) else person(request).get_username()


def home_of(request: Request) -> str:
    """The data center that is meant where none is named."""
    return request.auth.data_center if isinstance(request.auth, Token) else ""
