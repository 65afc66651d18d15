"""How lists of the REST API come in pages: `limit` and `offset`, both bounded, so that no request asks for everything."""

from __future__ import annotations

from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request


class BoundedPagination(LimitOffsetPagination):
    max_limit = 1000
    max_offset = 10_000_000

    def get_offset(self, request: Request) -> int:
        return min(super().get_offset(request), self.max_offset)
