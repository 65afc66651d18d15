"""A signed body instead of a token: `X-Lakehub-Timestamp` and `X-Lakehub-Signature`, checked before anything is parsed."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.parsing import TooLarge
from quality.domain.signing import BadSignature
from quality.models import PipelineHook
from quality.pipelines import hooks

SIGNATURE = "X-Lakehub-Signature"
TIMESTAMP = "X-Lakehub-Timestamp"
_NOBODY = "No live pipeline hook has this address. Somebody of the team makes a new one."


class HookAuthentication(BaseAuthentication):
    """`request.user` is the person who made the hook, limited to its team; `request.auth` is the hook."""

    def authenticate(self, request: Request) -> tuple[User, PipelineHook]:
        now = wiring.clock.now()
        try:
            hook = hooks.signed_by(
                request.parser_context["kwargs"]["key"],
                timestamp=request.headers.get(TIMESTAMP, ""),
                body=_body(request),
                signed=request.headers.get(SIGNATURE, ""),
                now=now,
                wall=now - wiring.clock.ahead(),
            )
        except BadSignature as problem:
            raise AuthenticationFailed(str(problem)) from problem
        if hook is None:
            raise AuthenticationFailed(_NOBODY)
        hook.created_by.limited_to = hook.team
        return hook.created_by, hook

    def authenticate_header(self, request: Request) -> str:
        return "Signature"


def _body(request: Request) -> bytes:
    try:
        return request._request.body
    except RequestDataTooBig as problem:
        raise TooLarge(str(problem)) from problem
