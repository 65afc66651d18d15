"""REST answers are JSON, whatever a caller says it takes: a browser that looks at an address sees what a program gets."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class SingleRendererNegotiation(DefaultContentNegotiation):
    """What a view can write in one way only is not negotiated."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        available = list(renderers)
        if len(available) == 1:
            return available[0], available[0].media_type
        selected: tuple[BaseRenderer, str] = super().select_renderer(request, available, format_suffix)
        return selected
