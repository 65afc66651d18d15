"""A signed body instead of a token: `X-Lakehub-Timestamp` and `X-Lakehub-Signature`, checked before anything is parsed."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.http.parsing import PayloadTooLarge
from quality.domain.request_signature import BadSignature
from quality.models import PipelineHook
from quality.planning import pipeline_hooks

SIGNATURE_HEADER = "X-Lakehub-Signature"
TIMESTAMP_HEADER = "X-Lakehub-Timestamp"
_NO_LIVE_HOOK = "No live pipeline hook has this address. Somebody of the team makes a new one."


class HookAuthentication(BaseAuthentication):
    """`request.user` is the person who made the hook, limited to its team; `request.auth` is the hook."""

    def authenticate(self, request: Request) -> tuple[User, PipelineHook]:
        now = wiring.clock.now()
        try:
            hook = pipeline_hooks.authenticated_hook(
                request.parser_context["kwargs"]["key"],
                timestamp=request.headers.get(TIMESTAMP_HEADER, ""),
                body=_body(request),
                signed=request.headers.get(SIGNATURE_HEADER, ""),
                now=now,
                wall=now - wiring.clock.ahead(),
            )
        except BadSignature as problem:
            raise AuthenticationFailed(str(problem)) from problem
        if hook is None:
            raise AuthenticationFailed(_NO_LIVE_HOOK)
        hook.created_by.token_team = hook.team
        return hook.created_by, hook

    def authenticate_header(self, request: Request) -> str:
        return "Signature"


def _body(request: Request) -> bytes:
    try:
        return request._request.body
    except RequestDataTooBig as problem:
        raise PayloadTooLarge(str(problem)) from problem
