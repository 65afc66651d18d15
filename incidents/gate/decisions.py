"""What people have decided about the gate: the policies of a consumer, and the overrides in force."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from incidents.domain import gate
from incidents.domain.gate import Override, Policy
from incidents.gate.facts import Wanted
from incidents.models import GateOverride, GatePolicy
from ingestion.ports import CONSUMER as INGESTION
from lakehub.kernel.interval import Interval
from lakehub.prepared import Parameter, Prepared

_POLICIES = Prepared(
    lambda: GatePolicy.objects.filter(consumer=Parameter("consumer")).values_list("tier", "preset", "blocks", "shadow")
)


_OWN_JOBS = Policy("Lakehub's own jobs, lenient", gate.LENIENT)
"""They look every few minutes: the partition that is going on is always unknown, and would block them for ever."""


def policies_of(consumer: str) -> dict[int | None, Policy]:
    """By tier; None: for every tier that has none of its own."""
    found = {}
    for tier, preset, blocks, shadow in _POLICIES.rows(consumer=consumer):
        row = GatePolicy(consumer=consumer, tier=tier, preset=preset, blocks=blocks, shadow=shadow)
        found[tier] = Policy(f"{row}, {preset}", row.words, shadow)
    if consumer == INGESTION:
        found.setdefault(None, _OWN_JOBS)
    return found


def policy_for(tier: int, policies: Mapping[int | None, Policy]) -> Policy:
    """The tier's own, else the one for every tier, else the default: fail and unknown block."""
    return policies.get(tier) or policies.get(None) or Policy()


def overrides_of(wanted: Iterable[Wanted], consumer: str, *, now: datetime) -> Mapping[int, list[Override]]:
    """Those in force for the consumer, by copy."""
    copies = {one.copy.pk: one.copy for one in wanted if one.found.overridden}
    found: defaultdict[int, list[Override]] = defaultdict(list)
    if not copies:
        return found
    datasets = {copy.dataset_id for copy in copies.values()}
    in_force = GateOverride.objects.filter(
        dataset__in=datasets, ended_at=None, expires_at__gt=now, consumer__in=("", consumer)
    )
    for row in in_force.order_by("pk"):
        said = Override(row.pk, Interval(row.start, row.end), row.created_by, row.reason, row.expires_at, row.consumer)
        for pk, copy in copies.items():
            if row.dataset_id == copy.dataset_id and row.copy_id in (None, pk):
                found[pk].append(said)
    return found
