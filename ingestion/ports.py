"""What ingestion asks of the apps above it, bound in settings (`LAKEHUB_PORTS`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, cast

from django.conf import settings

from lakehub.catalog.lineage.missing_tables import SourceTurn
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.registry import Registry

GATE_CONSUMER = "ingestion"
"""Who Lakehub's own jobs are to the gate: its policies are this consumer's."""


@dataclass(frozen=True)
class JobInput:
    """A range of a copy in the lake that a job is about to read, or what it reads is made from."""

    copy: int
    dataset: str
    data_center: str
    data_range: Interval

    def __str__(self) -> str:
        return f"{self.dataset}@{self.data_center}"


@dataclass(frozen=True)
class InputDecision:
    """May a job read this input now? Where not: why, by which incidents, and when to ask again."""

    job_input: JobInput
    allowed: bool
    verdict: str
    reason: str = ""
    incidents: tuple[int, ...] = ()
    retry_at: datetime | None = None


class InputGate(Protocol):
    def __call__(
        self, inputs: Sequence[JobInput], *, consumer: str, request_id: str, now: datetime
    ) -> Sequence[InputDecision]:
        """The answers in the order of the inputs. Of one request a question is counted once."""
        ...


class RowsInLake(Protocol):
    """How many records a table in the lake holds. Raises ValueError that says why they cannot be counted."""

    def __call__(self, uri: str) -> int: ...


class AuditCheck(Protocol):
    """What is wrong with a test that a pipeline has for its rows before they are committed; empty: nothing. `columns`: of the target; `inputs`:
    of each input, by the name that the SELECT calls it; None: not known."""

    def __call__(
        self, test: str, columns: Collection[str], inputs: Mapping[str, Collection[str] | None], key: Sequence[str]
    ) -> str: ...


class LagLimit(Protocol):
    """How far the copies of a dataset may be behind their source, by its tier or its own SLA."""

    def __call__(self, dataset: Dataset) -> timedelta: ...


def lag_limit(dataset: Dataset) -> timedelta:
    bound = Registry[object]("port", settings.LAKEHUB_PORTS).get("ingestion.LagLimit")
    return cast("LagLimit", bound)(dataset)


def audit_check() -> AuditCheck:
    return cast("AuditCheck", Registry[object]("port", settings.LAKEHUB_PORTS).get("ingestion.AuditCheck"))


def auditor() -> str:
    """`module:function` of who judges audits (`ingestion.spark.etl.audits.Auditor`): jobs know no settings, and are told."""
    return str(settings.LAKEHUB_PORTS["ingestion.Auditor"])


def rows_in_lake(uri: str) -> int:
    bound = Registry[object]("port", settings.LAKEHUB_PORTS).get("ingestion.RowsInLake")
    return cast("RowsInLake", bound)(uri)


def input_gate() -> InputGate:
    """The gate that jobs ask, as the settings bind it."""
    return cast("InputGate", Registry[object]("port", settings.LAKEHUB_PORTS).get("ingestion.InputGate"))


def source_turn() -> SourceTurn:
    """What a look at a table of a connection waits for, so that slow sources never have all workers."""
    return cast("SourceTurn", Registry[object]("port", settings.LAKEHUB_PORTS).get("ingestion.SourceTurn"))
