"""What the gate is compared with: the same authentication, one indexed SELECT, a short answer in JSON."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub.accounts.authentication import TokenAuthentication
from lakehub.catalog.models import Dataset


def _looked_up(name: str) -> dict[str, Any]:
    pk, tier, grain = Dataset.objects.filter(name=name).values_list("pk", "tier", "grain").get()
    return {"dataset": name, "number": pk, "tier": tier, "grain": grain}


@login_not_required
def plain(request: HttpRequest) -> HttpResponse:
    """As Django alone would do it."""
    found = TokenAuthentication().authenticate(Request(request))
    if found is None or "gate:read" not in found[1].scopes:
        return JsonResponse({"error": "no token"}, status=401)
    return JsonResponse(_looked_up(request.GET["dataset"]))


class Api(APIView):
    """As the rest of the API does it."""

    scopes: ClassVar = {"GET": "gate:read"}

    def get(self, request: Request) -> Response:
        return Response(_looked_up(request.query_params["dataset"]))
