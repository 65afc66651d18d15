"""What a person recognizes of a browser in a list: its name and system, never the whole header."""

from __future__ import annotations

# In this order: most browsers name those that they resemble too.
_BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("Chrome/", "Chrome"), ("CriOS/", "Chrome"),
    ("Safari/", "Safari"), ("curl/", "curl"), ("python-requests/", "Python"),
)  # fmt: skip
_SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip


def browser_name(user_agent: str) -> str:
    """`Firefox on Linux`; empty where nothing is known of it."""
    names = (next((name for sign, name in signs if sign in user_agent), "") for signs in (_BROWSERS, _SYSTEMS))
    return " on ".join(name for name in names if name)
