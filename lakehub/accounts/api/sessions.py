"""Sessions over REST. Not for tokens: those have no session, and end nobody's."""

from __future__ import annotations

from typing import ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts import teams
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require_operator
from lakehub.accounts.recent_sign_in import NOT_RECENT, signed_in_recently
from lakehub.accounts.serializers import EndedSessionsSerializer, SessionSerializer
from lakehub.accounts.sign_in import sessions


class SessionList(APIView):
    scopes: ClassVar[dict[str, str]] = {}

    @extend_schema(responses=SessionSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The browsers that you are signed in with, those seen last first."""
        rows = sessions.live_sessions(cast("User", request.user))[: sessions.MAX_SESSIONS]
        return Response(SessionSerializer(rows, many=True).data)

    @extend_schema(operation_id="sessions_end_others", responses=EndedSessionsSerializer)
    def delete(self, request: Request) -> Response:
        """Signs out all your browsers but this one. Needs a sign-in of the last 15 minutes."""
        require_recent_sign_in(request)
        person, keep = cast("User", request.user), request.session.session_key
        ended = sessions.end_sessions(person, actor=person.get_username(), now=wiring.clock.now(), keep=keep)
        return Response({"ended": ended})


class SessionDetail(APIView):
    scopes: ClassVar[dict[str, str]] = {}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, number: int) -> Response:
        """Signs out one of your browsers. Needs a sign-in of the last 15 minutes."""
        require_recent_sign_in(request)
        sessions.end_session(cast("User", request.user), number, now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class PersonSessions(APIView):
    scopes: ClassVar[dict[str, str]] = {}

    @extend_schema(responses=EndedSessionsSerializer)
    def delete(self, request: Request, username: str) -> Response:
        """Signs somebody out everywhere. Needs a superuser who has signed in within the last 15 minutes."""
        require_operator(request)
        require_recent_sign_in(request)
        person, actor = teams.person_named(username), request.user.get_username()
        return Response({"ended": sessions.end_sessions(person, actor=actor, now=wiring.clock.now())})


def require_recent_sign_in(request: Request) -> None:
    """Raises PermissionDenied."""
    if not signed_in_recently(request.session):
        raise PermissionDenied(NOT_RECENT)
