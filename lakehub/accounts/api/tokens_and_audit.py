"""Tokens and the audit log over REST."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.api.sessions import require_recent_sign_in
from lakehub.accounts.audit import audit_log, csv_export
from lakehub.accounts.models import AuditEntry, Team, Token, User
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team, require_in_some_team
from lakehub.accounts.serializers import (
    AuditEntrySerializer,
    IssuedTokenSerializer,
    TokenRequestSerializer,
    TokenSerializer,
)
from lakehub.accounts.tokens import api_tokens
from lakehub.http.instants import parse_instant
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

FILTER_PARAMETERS = [
    OpenApiParameter("actor", str),
    OpenApiParameter("subject", str, description="`dataset:flights`, or `dataset:` for all of a kind."),
    OpenApiParameter("action", str),
    OpenApiParameter("since", OpenApiTypes.DATETIME),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Not included."),
]


class TokenList(ListAPIView[Token]):
    """The live tokens of the teams that you administer; with `all=1`, those too that have ended."""

    scopes: ClassVar = {"GET": "tokens:read", "POST": "tokens:write"}
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[Token]:
        ended = self.request.query_params.get("all") == "1"
        return api_tokens.visible_tokens(cast("User", self.request.user), now=wiring.clock.now(), ended=ended)

    @extend_schema(parameters=[OpenApiParameter("all", str)], responses=TokenSerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_in_some_team(request.user, "issue")
        return super().get(request, *args, **kwargs)

    @extend_schema(request=TokenRequestSerializer, responses={201: IssuedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Makes a token and shows its text, this once. A token makes only tokens that can no more than itself; a browser needs a
        sign-in of the last 15 minutes."""
        team = Team.objects.filter(name=field_of_body(request, "team")).first()
        require_in_named_team(request.user, "issue", team)
        serializer = TokenRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values, now = serializer.validated_data, wiring.clock.now()
        ends = now + timedelta(days=values["days"])
        if isinstance(request.auth, Token):
            api_tokens.require_within_maker(values["scopes"], ends, maker=request.auth)
        else:
            require_recent_sign_in(request)
        token, text = api_tokens.issue_token(
            name=values["name"],
            consumer=values["consumer"],
            team=_require_team(team, values["team"]),
            created_by=cast("User", request.user),
            scopes=values["scopes"],
            data_center=values["data_center"],
            now=now,
            expires_at=ends,
        )
        body = TokenSerializer(token).data | {"token": text}
        return Response(body, status.HTTP_201_CREATED)


class TokenDetail(APIView):
    scopes: ClassVar = {"DELETE": "tokens:write"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, prefix: str) -> Response:
        """Revokes it: from now on it opens nothing."""
        require_in_some_team(request.user, "issue")
        token = api_tokens.token_by_prefix(prefix)
        require(request.user, "issue", token.team)
        api_tokens.revoke_token(token, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditLog(ListAPIView[AuditEntry]):
    """Who changed what in the teams that you administer, newest first. A superuser who is signed in sees all lines."""

    scopes: ClassVar = {"GET": "audit:read"}
    serializer_class = AuditEntrySerializer

    def get_queryset(self) -> QuerySet[AuditEntry]:
        reader = cast("User", self.request.user)
        return audit_log.find_entries(parse_audit_filter(self.request.query_params), reader=reader)

    @extend_schema(parameters=FILTER_PARAMETERS, responses=AuditEntrySerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_in_some_team(request.user, "audit")
        return super().get(request, *args, **kwargs)


class AuditExport(APIView):
    scopes: ClassVar = {"GET": "audit:read"}

    @extend_schema(parameters=FILTER_PARAMETERS, responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        """The same as CSV, the newest 100,000 lines."""
        require_in_some_team(request.user, "audit")
        audit_filter = parse_audit_filter(request.query_params)
        return csv_export.csv_response(audit_log.find_entries(audit_filter, reader=cast("User", request.user)))


def parse_audit_filter(parameters: Any) -> audit_log.AuditFilter:
    """What the parameters narrow to. Raises Refused."""
    words = {name: parameters.get(name, "").strip() for name in ("actor", "subject", "action")}
    return audit_log.AuditFilter(
        **words, since=_parse_instant("since", parameters), until=_parse_instant("until", parameters)
    )


def _parse_instant(name: str, parameters: Any) -> datetime | None:
    text = parameters.get(name, "").strip()
    return parse_instant(text, name=name, zone=UTC) if text else None


def _require_team(team: Team | None, name: str) -> Team:
    if team is None:
        near = did_you_mean(name, Team.objects.values_list("name", flat=True))
        raise Refused.for_fields({"team": f"There is no team `{name}`.{near}"})
    return team
