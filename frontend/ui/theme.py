"""The viewer's choice of light or dark: a cookie, written into `data-theme` by the server so that nothing flashes."""

from __future__ import annotations

from django.http import HttpRequest

THEME_COOKIE = "theme"
SYSTEM = "system"
NEXT_THEME = {SYSTEM: "light", "light": "dark", "dark": SYSTEM}


def chosen_theme(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, SYSTEM)
    return chosen if chosen in NEXT_THEME else SYSTEM
