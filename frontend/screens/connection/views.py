"""A connection and who reads by it; another URL is tried, and what comes of it shown, before it is saved."""

from __future__ import annotations

from django.contrib import messages
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.ui.form_actions import actor_of, errors_as_messages
from lakehub import wiring
from lakehub.accounts.permissions import can, require
from lakehub.catalog.connection_limits import BOUNDS, limit_connection
from lakehub.catalog.datasets.connection_change import (
    change_connection,
    check_connection_change,
    find_connection,
    readers_of_connection,
)
from lakehub.catalog.models import Connection
from lakehub.catalog.ports import Consequence
from lakehub.db.encrypted_fields import decrypt_text, encrypt_text
from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused

MAX_URL = 1000
_MAX_DIGITS = 12


def edit_connection(request: HttpRequest, name: str) -> HttpResponse:
    try:
        connection = find_connection(name)
    except NotFound as missing:
        raise Http404(str(missing)) from missing
    if request.method != "POST":
        return _page(request, connection)
    require(actor_of(request), "connect", connection.team)
    actor, now = actor_of(request).get_username(), wiring.clock.now()
    try:
        if "sealed" not in request.POST:
            url = request.POST.get("url", "").strip()[:MAX_URL]
            lines = check_connection_change(connection, url, actor=actor, now=now).consequences
            return _page(request, connection, lines=lines, url=url)
        url = _opened(request.POST["sealed"], connection)
        change_connection(connection, url, actor=actor, now=now)
    except Refused as refused:
        return _page(request, connection, error=refused.fields.get("url", str(refused)))
    except Busy as busy:
        return _page(request, connection, error=str(busy), retry_after_s=busy.retry_after_s)
    except Conflict as conflict:
        messages.warning(request, str(conflict))
    else:
        messages.info(request, f"Connection {name} has its new URL.")
    return redirect("connection-edit", name)


@require_POST
def limit(request: HttpRequest, name: str) -> HttpResponse:
    """How much of the source all jobs and looks may use together; an empty field is no limit."""
    try:
        connection = find_connection(name)
    except NotFound as missing:
        raise Http404(str(missing)) from missing
    actor = actor_of(request)
    require(actor, "connect", connection.team)
    with errors_as_messages(request):
        limits = {field: _number(request.POST.get(field, ""), field) for field in BOUNDS}
        limit_connection(connection, **limits, actor=actor.get_username(), now=wiring.clock.now())
        messages.info(request, f"Connection {name} has its new limits.")
    return redirect("connection-edit", name)


def _number(text: str, field: str) -> int | None:
    """Raises Refused."""
    digits = text.strip().replace(",", "")
    if digits and not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        raise Refused(f"`{field}` is '{text[:_MAX_DIGITS]}': write a whole number, or nothing for no limit.")
    return int(digits) if digits else None


def _page(
    request: HttpRequest,
    connection: Connection,
    *,
    lines: list[Consequence] | None = None,
    url: str = "",
    error: str = "",
    retry_after_s: int = 0,
) -> HttpResponse:
    context = {
        "connection": connection,
        "readers": readers_of_connection(connection),
        "may_change": can(actor_of(request), "connect", connection.team),
        "rows_hint": f"At least {BOUNDS['rows_per_s'][0]}; empty: as fast as they can.",
        "lines": lines,
        "sealed": _sealed(url, connection) if lines is not None else "",
        "error": error,
    }
    status = 200 if not error else 503 if retry_after_s else 422
    answer = render(request, "screens/connection/templates/page.html", context, status=status)
    if retry_after_s:
        answer.headers["Retry-After"] = str(retry_after_s)
    return answer


def _sealed(url: str, connection: Connection) -> str:
    """The URL that was checked, which the page carries to its confirmation and nobody can read there."""
    return signing.dumps([connection.pk, encrypt_text(url)], salt="connection-url")


def _opened(sealed: str, connection: Connection) -> str:
    """Raises Refused where it is not this connection's, or is an hour old."""
    try:
        pk, encrypted = signing.loads(sealed, salt="connection-url", max_age=3600)
    except (signing.BadSignature, ValueError):
        pk, encrypted = None, ""
    if pk != connection.pk:
        raise Refused.for_fields({"url": "What was checked is too old: write the URL once more."})
    return decrypt_text(encrypted)
