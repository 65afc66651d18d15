"""The REST API as a program sees it: a token, an address, JSON."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class GateClient:
    """Calls `url` as the consumer of `token`."""

    url: str
    token: str

    def gate(self, dataset: str, data: Interval) -> dict[str, Any]:
        """May I read `dataset` over this range now? The data center is the token's."""
        return self._get("gate", dataset=dataset, **{"from": _iso(data.start), "to": _iso(data.end)})

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  our own address
            body: dict[str, Any] = json.load(answer)
        return body


def _iso(instant: datetime) -> str:
    return instant.isoformat()
