"""Every address: pages, the REST API under /api/v1/, the admin console, and what watches the process."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from lakehub import health
from lakehub import plugin_checks as plugin_checks  # registers itself
from lakehub.accounts.tokens import openapi_scheme as openapi_scheme  # registers itself
from lakehub.http.openapi import SCHEMA_RENDERERS, CachedSchemaGenerator
from lakehub.http.security_txt import security_txt

api: list[URLPattern | URLResolver] = [
    path(
        "", include("incidents.api.urls")
    ),  # first, because the gate is asked most: addresses are looked through in their order
    path("", include("lakehub.accounts.urls")),
    path("", include("lakehub.catalog.urls")),
    path("", include("ingestion.urls")),
    path("", include("quality.api.urls")),
    path(
        "schema",
        SpectacularAPIView.as_view(generator_class=CachedSchemaGenerator, renderer_classes=SCHEMA_RENDERERS),
        name="schema",
    ),
]

urlpatterns = [
    path("api/v1/", include((api, "api"))),
    path("console/", admin.site.urls),
    path("health", health.alive, name="health"),
    path("ready", health.ready, name="ready"),
    path("metrics", health.metrics, name="metrics"),
    path(".well-known/security.txt", security_txt, name="security-txt"),
    path("", include("frontend.urls")),
]

handler400 = "frontend.screens.errors.views.bad_request"
handler403 = "frontend.screens.errors.views.forbidden"
handler404 = "frontend.screens.errors.views.not_found"
handler500 = "frontend.screens.errors.views.server_error"
