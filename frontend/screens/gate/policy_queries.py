"""What consumers' jobs do with a verdict: every policy, whose it is, and the form that sets one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from django.http import QueryDict

from frontend.ui.whole_numbers import parse_whole_number
from incidents.models import GatePolicy, PolicyPreset
from lakehub.accounts.models import Consumer, Team, User
from lakehub.accounts.permissions import teams_where
from lakehub.accounts.tokens import consumers
from lakehub.kernel.errors import Refused

PAGE_SIZE = 50
PRESETS = (
    (PolicyPreset.STRICT, "Strict", "Fail, unknown and warn block: for what cannot be taken back."),
    (PolicyPreset.LENIENT, "Lenient", "Only fail blocks: for what shows what there is."),
    (PolicyPreset.CUSTOM, "Custom", "What is named below blocks."),
)


@dataclass(frozen=True)
class PolicyRow:
    policy: GatePolicy
    blocks: list[str]
    team: str
    """That holds the consumer's name; empty: nobody's."""
    may_change: bool


@dataclass(frozen=True)
class PolicyForm:
    """As it was typed, with what is wrong with it by field."""

    consumer: str = ""
    tier: str = ""
    preset: str = PolicyPreset.STRICT.value
    blocks: str = ""
    shadow: bool = False
    errors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def words(self) -> list[str]:
        return [word for word in self.blocks.replace(",", " ").split() if word]


@dataclass(frozen=True)
class PolicyRights:
    """Which consumers a person sets policies of, as `policies.require_policy_right` says it of one. Three queries."""

    team_ids: frozenset[int]
    by_name: Mapping[str, frozenset[int]]
    runs_the_instance: bool

    def __call__(self, consumer: str) -> bool:
        teams = self.by_name.get(consumer)
        return teams <= self.team_ids if teams else self.runs_the_instance

    @property
    def names(self) -> list[str]:
        """To choose from; who runs the instance may write any other."""
        own = [consumers.INGESTION_CONSUMER] if self.runs_the_instance else []
        return [*own, *sorted(filter(self, self.by_name))]


def policy_rights(person: User, *, now: datetime) -> PolicyRights:
    team_ids = Team.objects.filter(teams_where(person, "set policy")).values_list("pk", flat=True)
    everything = person.is_superuser and person.token_team is None
    return PolicyRights(frozenset(team_ids), consumers.deciding_teams_by_consumer(now=now), everything)


def policy_rows(policies: Sequence[GatePolicy], may: PolicyRights) -> list[PolicyRow]:
    """One query."""
    held_consumers = Consumer.objects.filter(name__in=[policy.consumer for policy in policies])
    teams = dict(held_consumers.values_list("name", "team__name"))
    return [
        PolicyRow(policy, sorted(policy.blocking_verdicts), teams.get(policy.consumer, ""), may(policy.consumer))
        for policy in policies
    ]


def form_from_query(query: QueryDict) -> PolicyForm:
    """Of the policy that the address names, as it is now; else an empty one."""
    consumer, tier = query.get("consumer", ""), query.get("tier", "")
    policy = GatePolicy.objects.filter(consumer=consumer, tier=parse_whole_number(tier)).first() if consumer else None
    if policy is None:
        return PolicyForm(consumer=consumer, tier=tier)
    return PolicyForm(consumer, tier, policy.preset, ", ".join(policy.blocks), policy.shadow)


def form_from_post(posted: QueryDict) -> PolicyForm:
    consumer, tier, preset = (posted.get(name, "").strip() for name in ("consumer", "tier", "preset"))
    # What was typed for a custom policy stays in the browser when a preset is chosen: it is not meant then.
    blocks = posted.get("blocks", "") if preset == PolicyPreset.CUSTOM else ""
    return PolicyForm(consumer, tier, preset, blocks, "shadow" in posted)


def parse_tier(text: str) -> int | None:
    """None: every tier that has no policy of its own. Raises Refused."""
    if text and parse_whole_number(text) is None:
        raise Refused.for_fields({"tier": f"`{text[:20]}` is no tier: 0 to 5."})
    return parse_whole_number(text)
