"""All addresses of the product, and the yardstick."""

from __future__ import annotations

from django.urls import path

from bench.serving.yardstick import YardstickView, plain_view
from lakehub.urls import urlpatterns as product

urlpatterns = [path("yardstick/plain", plain_view), path("yardstick/api", YardstickView.as_view()), *product]
