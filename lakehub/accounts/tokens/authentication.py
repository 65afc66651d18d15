"""Who asks: `Authorization: Bearer lh_...` for programs, the session for browsers. It stands in what is logged meanwhile (`caller`)."""

from __future__ import annotations

import base64

from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from structlog.contextvars import bind_contextvars

from lakehub import wiring
from lakehub.accounts.models import Token, User
from lakehub.accounts.tokens import api_tokens


class TokenAuthentication(BaseAuthentication):
    """`request.user` is the person who made the token, `request.auth` the Token."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The Authorization header must be `Bearer <token>`, with one space.")
        return _authenticated(words[1].decode("latin-1"))

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenAsPasswordAuthentication(BaseAuthentication):
    """`Authorization: Basic`, for programs that know nothing else: the token is the password, whoever the user is."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"basic":
            return None
        try:
            _, _, password = base64.b64decode(words[1], validate=True).decode("latin-1").partition(":")
        except (IndexError, ValueError) as problem:
            raise AuthenticationFailed("The Authorization header must be `Basic <user:token in base64>`.") from problem
        return _authenticated(password)


def _authenticated(secret: str) -> tuple[User, Token]:
    token = api_tokens.authenticate(secret, now=wiring.clock.now())
    if token is None:
        raise AuthenticationFailed("This token is unknown, expired or revoked. An administrator issues a new one.")
    bind_contextvars(caller=token.prefix)
    token.created_by.token_team = token.team
    return token.created_by, token


class NamedAuthenticationMiddleware(AuthenticationMiddleware):
    """Django's. The session is still read when somebody first asks for `request.user`."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _named(request))  # type: ignore[assignment]


def _named(request: HttpRequest) -> User | AnonymousUser:
    person = get_user(request)
    if isinstance(person, User):
        bind_contextvars(caller=person.get_username())
        return person
    return AnonymousUser()
