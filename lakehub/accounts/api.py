"""Tokens and the audit log over REST."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts import audit, audit_csv, tokens
from lakehub.accounts.models import AuditEntry, Team, Token, User
from lakehub.accounts.permissions import named, require, require_named, require_somewhere
from lakehub.accounts.serializers import AuditEntrySerializer, IssuedSerializer, NewTokenSerializer, TokenSerializer
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

NARROWING = [
    OpenApiParameter("actor", str),
    OpenApiParameter("subject", str, description="`dataset:flights`, or `dataset:` for all of a kind."),
    OpenApiParameter("action", str),
    OpenApiParameter("since", OpenApiTypes.DATETIME),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Not included."),
]


class Tokens(ListAPIView[Token]):
    """The live tokens of the teams that you administer; with `all=1`, those too that have ended."""

    scopes: ClassVar = {"GET": "tokens:read", "POST": "tokens:write"}
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[Token]:
        ended = self.request.query_params.get("all") == "1"
        return tokens.visible(cast("User", self.request.user), now=wiring.clock.now(), ended=ended)

    @extend_schema(parameters=[OpenApiParameter("all", str)], responses=TokenSerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_somewhere(request.user, "issue")
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NewTokenSerializer, responses={201: IssuedSerializer})
    def post(self, request: Request) -> Response:
        """Makes a token and shows its text, this once. A token makes only tokens that can no more than itself."""
        team = Team.objects.filter(name=named(request, "team")).first()
        require_named(request.user, "issue", team)
        asked = NewTokenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said, now = asked.validated_data, wiring.clock.now()
        ends = now + timedelta(days=said["days"])
        if isinstance(request.auth, Token):
            tokens.no_wider(said["scopes"], ends, maker=request.auth)
        token, text = tokens.issue(
            name=said["name"],
            consumer=said["consumer"],
            team=_known(team, said["team"]),
            created_by=cast("User", request.user),
            scopes=said["scopes"],
            data_center=said["data_center"],
            now=now,
            expires_at=ends,
        )
        body = TokenSerializer(token).data | {"token": text}
        return Response(body, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class OneToken(APIView):
    scopes: ClassVar = {"DELETE": "tokens:write"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, prefix: str) -> Response:
        """Revokes it: from now on it opens nothing."""
        require_somewhere(request.user, "issue")
        token = tokens.named(prefix)
        require(request.user, "issue", token.team)
        tokens.revoke(token, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditLog(ListAPIView[AuditEntry]):
    """Who changed what, newest first. For administrators of a team."""

    scopes: ClassVar = {"GET": "audit:read"}
    serializer_class = AuditEntrySerializer

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return audit.entries(wanted(self.request.query_params))

    @extend_schema(parameters=NARROWING, responses=AuditEntrySerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_somewhere(request.user, "audit")
        return super().get(request, *args, **kwargs)


class AuditExport(APIView):
    scopes: ClassVar = {"GET": "audit:read"}

    @extend_schema(parameters=NARROWING, responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        """The same as CSV, the newest 100,000 lines."""
        require_somewhere(request.user, "audit")
        return audit_csv.as_csv(audit.entries(wanted(request.query_params)))


def wanted(asked: Any) -> audit.Wanted:
    """What the parameters narrow to. Raises Refused."""
    words = {name: asked.get(name, "").strip() for name in ("actor", "subject", "action")}
    return audit.Wanted(**words, since=_instant("since", asked), until=_instant("until", asked))


def _instant(name: str, asked: Any) -> datetime | None:
    text = asked.get(name, "").strip()
    if not text:
        return None
    try:
        found = parse_datetime(text.replace(" ", "+"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Refused.because({name: f"`{text}` is not a time with an offset: write 2026-11-17T15:30:00Z."})
    return found


def _known(team: Team | None, name: str) -> Team:
    if team is None:
        near = did_you_mean(name, Team.objects.values_list("name", flat=True))
        raise Refused.because({"team": f"There is no team `{name}`.{near}"})
    return team
