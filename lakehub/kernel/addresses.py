"""A URL as it may be shown: in an error, a log, or to a colleague; whose an address is: anybody's, this network's, one client's."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit


def redacted_url(url: str) -> str:
    """The URL without password, query and fragment, where secrets may be; `this URL` where it does not parse.

    An `@` behind the host ends a password with a `/`, `?` or `#` in it, which parsers cut there: all of it is left out.
    """
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return "this URL (which does not parse)"
    if not parts.scheme:
        return "this URL (which has no scheme)"
    if "@" in parts.path + parts.query + parts.fragment:
        return f"{parts.scheme}://…"
    host = parts.netloc.rpartition("@")[2]
    who = f"{user or ''}{':***' if password is not None else ''}@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{who}{host}{parts.path}{'?…' if parts.query else ''}"


def host_of(url: str) -> str:
    """Only the host: what a message may say of a webhook, whose path is often its secret."""
    try:
        return urlsplit(url).hostname or "an address that does not parse"
    except ValueError:
        return "an address that does not parse"


_HOST_PATTERN = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")


def host_pattern(text: str) -> str:
    """A network or an address as it is compared, or a name in small letters; `*.` before one stands for all names below it.

    Raises ValueError. A number with dots is no name: a resolver takes it for an address.
    """
    pattern = text.lower().rstrip(".")
    if re.search(r"[:/]|^[\d.]+$", pattern):
        return str(ipaddress.ip_network(pattern))
    if not _HOST_PATTERN.fullmatch(pattern):
        raise ValueError(f"{text!r} is not a host")
    return pattern


def is_listed_host(host: str, patterns: Iterable[str]) -> bool:
    """Whether a host, as a URL has it, is one of these (see `host_pattern`). A name is compared as a name: it is not resolved."""
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return any(name == pattern or (pattern[:2] == "*." and name.endswith(pattern[1:])) for pattern in patterns)
    address = getattr(address, "ipv4_mapped", None) or address
    networks = (ipaddress.ip_network(pattern) for pattern in patterns if "/" in pattern)
    return any(address in network for network in networks)


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public_ip(address: str) -> bool:
    """Whether an IP address is one of the Internet's; also what is wrapped in it, as a gateway of this network unwraps it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.sixtofour is not None:
            # Some releases of Python 3.11 call all of 2002::/16 private, others all of it global: what is wrapped in it tells.
            return is_public_ip(str(ip.sixtofour))
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped
        if inner is not None:
            return ip.is_global and is_public_ip(str(inner))
    return ip.is_global and not ip.is_multicast


_IPV6_SITE_BITS = 64
"""One customer of a network has at least so many addresses to choose from."""


def forwarded_client(forwarded_for: str, peer: str, proxies: int) -> str:
    """Behind so many proxies, the address that the first of them saw; anybody can write what stands before it in `X-Forwarded-For`."""
    addresses = [part.strip() for part in forwarded_for.split(",") if part.strip()]
    return addresses[-proxies] if proxies and len(addresses) >= proxies else peer


def network_of(address: str) -> str:
    """The address as far as one client can be told from another: of IPv6 the first 64 bits."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a proxy may write a port, or `unknown`
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)  # of a socket that takes both
    return str(ipaddress.IPv6Network((int(parsed), _IPV6_SITE_BITS), strict=False)) if parsed.version == 6 else address
