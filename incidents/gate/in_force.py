"""What people have decided about the gate: the policies of a consumer, and the overrides in force."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from incidents.domain.gate import decide
from incidents.domain.gate.decide import Override, Policy
from incidents.gate.copies import RequestedRange
from incidents.models import GateOverride, GatePolicy
from ingestion.ports import GATE_CONSUMER as INGESTION
from lakehub.db.prepared_query import Parameter, PreparedQuery
from lakehub.kernel.interval import Interval

_POLICIES = PreparedQuery(
    lambda: GatePolicy.objects.filter(consumer=Parameter("consumer")).values_list("tier", "preset", "blocks", "shadow")
)


_INTERNAL_JOBS_POLICY = Policy("Lakehub's own jobs, lenient", decide.LENIENT_BLOCKS)
"""They look every few minutes: the partition that is going on is always unknown, and would block them for ever."""


def policies_in_force(consumer: str, requested_ranges: Iterable[RequestedRange]) -> dict[int | None, Policy]:
    """By tier; None: for every tier that has none of its own."""
    policies = {}
    policed = any(requested.known_copy.policed for requested in requested_ranges)
    for tier, preset, blocks, shadow in _POLICIES.rows(consumer=consumer) if policed else ():
        row = GatePolicy(consumer=consumer, tier=tier, preset=preset, blocks=blocks, shadow=shadow)
        policies[tier] = Policy(f"{row}, {preset}", row.blocking_verdicts, shadow)
    if consumer == INGESTION:
        policies.setdefault(None, _INTERNAL_JOBS_POLICY)
    return policies


def policy_for(tier: int, policies: Mapping[int | None, Policy]) -> Policy:
    """The tier's own, else the one for every tier, else the default: fail and unknown block."""
    return policies.get(tier) or policies.get(None) or Policy()


def overrides_in_force(
    requested_ranges: Iterable[RequestedRange], consumer: str, *, now: datetime
) -> Mapping[int, list[Override]]:
    """Those in force for the consumer, by copy."""
    copies = {requested.copy.pk: requested.copy for requested in requested_ranges if requested.known_copy.overridden}
    overrides_by_copy: defaultdict[int, list[Override]] = defaultdict(list)
    if not copies:
        return overrides_by_copy
    datasets = {copy.dataset_id for copy in copies.values()}
    in_force = GateOverride.objects.filter(
        dataset__in=datasets, ended_at=None, expires_at__gt=now, consumer__in=("", consumer)
    )
    for row in in_force.order_by("pk"):
        override = Override(
            row.pk, Interval(row.start, row.end), row.created_by, row.reason, row.expires_at, row.consumer
        )
        for pk, copy in copies.items():
            if row.dataset_id == copy.dataset_id and row.copy_id in (None, pk):
                overrides_by_copy[pk].append(override)
    return overrides_by_copy
