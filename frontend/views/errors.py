"""Pages for what cannot be shown. Each says what happened and where to go from here."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.shortcuts import render
from django.template.loader import render_to_string


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "frontend/errors/403.html", {"reason": str(exception)}, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    # Http404 raised by us explains itself; one by the URL resolver carries a dict of patterns, which tells a person nothing.
    reason = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    return render(request, "frontend/errors/404.html", {"reason": reason}, status=404)


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    # Without the frame: what failed may be what the frame needs.
    return HttpResponseServerError(render_to_string("frontend/errors/500.html"))
