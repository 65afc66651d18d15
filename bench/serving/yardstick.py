"""What the gate is compared with: the same authentication, one indexed SELECT, a short answer in JSON."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub.accounts.tokens.authentication import TokenAuthentication
from lakehub.catalog.models import Dataset


def _find_dataset(name: str) -> dict[str, Any]:
    pk, tier, grain = Dataset.objects.filter(name=name).values_list("pk", "tier", "grain").get()
    return {"dataset": name, "number": pk, "tier": tier, "grain": grain}


@login_not_required
def plain_view(request: HttpRequest) -> HttpResponse:
    """As Django alone would do it."""
    credentials = TokenAuthentication().authenticate(Request(request))
    if credentials is None or "gate:read" not in credentials[1].scopes:
        return JsonResponse({"error": "no token"}, status=401)
    return JsonResponse(_find_dataset(request.GET["dataset"]))


class YardstickView(APIView):
    """As the rest of the API does it."""

    scopes: ClassVar = {"GET": "gate:read"}

    def get(self, request: Request) -> Response:
        return Response(_find_dataset(request.query_params["dataset"]))
