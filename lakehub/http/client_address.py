"""Where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

_IPV6_SITE_BITS = 64
"""One customer of a network has at least so many addresses to choose from."""


def client_address(request: HttpRequest) -> str:
    """Behind LAKEHUB_PROXIES proxies, the address that the first of them saw; anybody can write what stands before it."""
    addresses = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    proxies = settings.LAKEHUB_PROXIES
    if proxies and len(addresses) >= proxies:
        return addresses[-proxies]
    return str(request.META.get("REMOTE_ADDR", ""))


def client_network(request: HttpRequest) -> str:
    return network_of(client_address(request))


def network_of(address: str) -> str:
    """The address as far as one client can be told from another: of IPv6 the first 64 bits."""
    try:
        parsed = ip_address(address)
    except ValueError:  # a proxy may write a port, or `unknown`
        return address
    return str(IPv6Network((int(parsed), _IPV6_SITE_BITS), strict=False)) if parsed.version == 6 else address
