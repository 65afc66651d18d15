"""Each request has an id: in all that is logged while it is answered, and in the answer, so that the two are found together.

The address that it comes from is logged with it, and who asks once that is known (`caller`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import uuid4

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from structlog.contextvars import bind_contextvars, unbind_contextvars

from lakehub.http.client_address import client_address

HEADER = "X-Request-ID"
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestIdMiddleware:
    """Middleware, before all others. Takes the id that a proxy or a caller has sent, else it makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        sent = request.headers.get(HEADER, "")
        request_id = sent if _USABLE.fullmatch(sent) else uuid4().hex
        # It stays bound until the thread's next request: Django logs a 404 after the middleware has ended.
        unbind_contextvars("caller")
        bind_contextvars(request_id=request_id, address=client_address(request))
        response = self._get_response(request)
        response.headers[HEADER] = request_id
        return response
