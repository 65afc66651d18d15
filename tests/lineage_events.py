"""Lineage events as OpenLineage has them, for tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def table(name: str, *, one_to_one: bool = False, dropped: bool = False) -> dict[str, Any]:
    """`ops/flights`: the table `flights` of the namespace `ops`."""
    namespace, _, own = name.partition("/")
    facets: dict[str, Any] = {"lakehub": {"one_to_one": True}} if one_to_one else {}
    if dropped:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": "DROP"}
    return {"namespace": namespace, "name": own, "facets": facets}


def event(
    job: str,
    at: datetime,
    inputs: list[dict[str, Any]] | None = None,
    outputs: list[dict[str, Any]] | None = None,
    *,
    kind: str = "COMPLETE",
    run: str = "",
) -> dict[str, Any]:
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "run": {"runId": run or f"{job}-{at:%m%d%H%M}"},
        "job": {"namespace": "airflow", "name": job},
        "inputs": inputs or [],
        "outputs": outputs or [],
    }
