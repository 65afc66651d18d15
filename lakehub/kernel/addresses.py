"""A URL as it may be shown: in an error, a log, or to a colleague."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown(url: str) -> str:
    """The URL without password, query and fragment, where secrets may be; `this URL` where it does not parse."""
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return "this URL (which does not parse)"
    if not parts.scheme:
        return "this URL (which has no scheme)"
    host = parts.netloc.rpartition("@")[2]
    who = f"{user or ''}{':***' if password is not None else ''}@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{who}{host}{parts.path}{'?…' if parts.query else ''}"


def host_of(url: str) -> str:
    """Only the host: what a message may say of a webhook, whose path is often its secret."""
    try:
        return urlsplit(url).hostname or "an address that does not parse"
    except ValueError:
        return "an address that does not parse"
