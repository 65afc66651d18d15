"""The gate over REST: may I read this dataset over this time range now?"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import gate
from incidents.api.common import person, valid
from incidents.shapes import gate as shapes
from lakehub import wiring
from lakehub.accounts.models import Token
from lakehub.catalog.instants import wanted_range
from lakehub.kernel.errors import Refused
from lakehub.kernel.outcome import Verdict, worst

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
        reply = _ask(request, asked, request.query_params.get("request_id", ""), now=wiring.clock.now())
        return Response(shapes.AnswerSerializer(shapes.answer_of(reply)).data)

    @extend_schema(request=shapes.InputsSerializer, responses=shapes.AnswersSerializer)
    def post(self, request: Request) -> Response:
        """All the inputs of a job at once: allowed where each of them is."""
        said = valid(shapes.InputsSerializer, request)
        if len(said["inputs"]) > MOST_INPUTS:
            raise Refused(f"{len(said['inputs'])} inputs are too many for one question: ask for {MOST_INPUTS} at most.")
        now = wiring.clock.now()
        replies = [_ask(request, one, said["request_id"], now=now) for one in said["inputs"]]
        answers = [shapes.answer_of(reply) for reply in replies]
        waits = [answer["retry_after"] for answer in answers if answer["retry_after"] is not None]
        body = {
            "verdict": worst(Verdict(answer["verdict"]) for answer in answers).value,
            "allowed": all(answer["allowed"] for answer in answers),
            # The last input to recover decides when asking again may help.
            "retry_after": max(waits, default=None),
            "answers": answers,
        }
        return Response(shapes.AnswersSerializer(body).data)


def _ask(request: Request, asked: dict[str, str], request_id: str, *, now: datetime) -> gate.Reply:
    """The consumer is the token's, never a parameter; a person at the browser asks as themselves."""
    token = request.auth if isinstance(request.auth, Token) else None
    if not asked["dataset"]:
        raise Refused.because({"dataset": "Say which `dataset`."})
    if len(request_id) > LONGEST_ID:
        raise Refused.because(
            {"request_id": f"A request id of {len(request_id)} characters: use {LONGEST_ID} at most."}
        )
    copy = gate.find_copy(asked["dataset"], asked["dc"] or (token.data_center if token else ""))
    wanted = wanted_range(asked["from"], asked["to"], copy.dataset)
    consumer = token.consumer if token else person(request).get_username()
    question = gate.Question(copy.dataset.name, wanted, consumer, copy.data_center.name, request_id)
    return gate.ask(question, now=now, copy=copy)
