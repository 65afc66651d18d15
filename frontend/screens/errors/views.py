"""Pages for what cannot be shown. Each says what happened and where to go from here; below /api/ the same as JSON."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseServerError, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    # Without the frame: a request that cannot be trusted is not looked into.
    if _is_api_request(request):
        return _json_error("invalid", "This request cannot be read.", 400)
    return HttpResponseBadRequest(render_to_string("screens/errors/templates/400.html"))


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api_request(request):
        return _json_error("permission_denied", str(exception), 403)
    return render(request, "screens/errors/templates/403.html", {"reason": str(exception)}, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    # Http404 raised by us explains itself; one by the URL resolver carries a dict of patterns, which tells a person nothing.
    reason = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    if _is_api_request(request):
        return _json_error(
            "not_found", reason or "There is nothing at this address: /api/v1/schema lists what there is.", 404
        )
    return render(request, "screens/errors/templates/404.html", {"reason": reason}, status=404)


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    # Without the frame: what failed may be what the frame needs.
    if _is_api_request(request):
        return _json_error("error", "Lakehub failed. The log of the web process says where.", 500)
    return HttpResponseServerError(render_to_string("screens/errors/templates/500.html"))


def _is_api_request(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _json_error(code: str, message: str, status: int) -> JsonResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)
