"""All addresses of the product, and the yardstick."""

from __future__ import annotations

from django.urls import path

from bench.serving.yardstick import Api, plain
from lakehub.urls import urlpatterns as product

urlpatterns = [path("yardstick/plain", plain), path("yardstick/api", Api.as_view()), *product]
