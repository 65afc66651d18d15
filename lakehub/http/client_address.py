"""Where a request comes from."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from lakehub.kernel.addresses import forwarded_client, network_of


def client_address(request: HttpRequest) -> str:
    """Behind LAKEHUB_PROXIES proxies, the address that the first of them saw."""
    forwarded_for, peer = request.headers.get("X-Forwarded-For", ""), str(request.META.get("REMOTE_ADDR", ""))
    return forwarded_client(forwarded_for, peer, settings.LAKEHUB_PROXIES)


def client_network(request: HttpRequest) -> str:
    return network_of(client_address(request))
