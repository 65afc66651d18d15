"""What consumers' jobs do with a verdict: every policy, whose it is, and the form that sets one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from django.http import QueryDict

from frontend.numbers import whole
from incidents.models import GatePolicy, Preset
from lakehub.accounts import consumers
from lakehub.accounts.models import Consumer, Team, User
from lakehub.accounts.permissions import teams_where
from lakehub.kernel.errors import Refused

PAGE = 50
PRESETS = (
    (Preset.STRICT, "Strict", "Fail, unknown and warn block: for what cannot be taken back."),
    (Preset.LENIENT, "Lenient", "Only fail blocks: for what shows what there is."),
    (Preset.CUSTOM, "Custom", "What is named below blocks."),
)


@dataclass(frozen=True)
class Row:
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
    preset: str = Preset.STRICT.value
    blocks: str = ""
    shadow: bool = False
    errors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def words(self) -> list[str]:
        return [word for word in self.blocks.replace(",", " ").split() if word]


@dataclass(frozen=True)
class Deciding:
    """Which consumers a person sets policies of, as `gate_policies.require_policy` says it of one. Three queries."""

    mine: frozenset[int]
    by_name: Mapping[str, frozenset[int]]
    runs_the_instance: bool

    def __call__(self, consumer: str) -> bool:
        teams = self.by_name.get(consumer)
        return teams <= self.mine if teams else self.runs_the_instance

    @property
    def names(self) -> list[str]:
        """To choose from; who runs the instance may write any other."""
        own = [consumers.INGESTION] if self.runs_the_instance else []
        return [*own, *sorted(filter(self, self.by_name))]


def deciding(person: User, *, now: datetime) -> Deciding:
    mine = Team.objects.filter(teams_where(person, "set policy")).values_list("pk", flat=True)
    everything = person.is_superuser and person.limited_to is None
    return Deciding(frozenset(mine), consumers.all_deciding(now=now), everything)


def rows(policies: Sequence[GatePolicy], may: Deciding) -> list[Row]:
    """One query."""
    held = Consumer.objects.filter(name__in=[one.consumer for one in policies])
    teams = dict(held.values_list("name", "team__name"))
    return [Row(one, sorted(one.words), teams.get(one.consumer, ""), may(one.consumer)) for one in policies]


def form_for(asked: QueryDict) -> PolicyForm:
    """Of the policy that the address names, as it is now; else an empty one."""
    consumer, tier = asked.get("consumer", ""), asked.get("tier", "")
    found = GatePolicy.objects.filter(consumer=consumer, tier=whole(tier)).first() if consumer else None
    if found is None:
        return PolicyForm(consumer=consumer, tier=tier)
    return PolicyForm(consumer, tier, found.preset, ", ".join(found.blocks), found.shadow)


def typed(said: QueryDict) -> PolicyForm:
    consumer, tier, preset = (said.get(name, "").strip() for name in ("consumer", "tier", "preset"))
    # What was typed for a custom policy stays in the browser when a preset is chosen: it is not meant then.
    blocks = said.get("blocks", "") if preset == Preset.CUSTOM else ""
    return PolicyForm(consumer, tier, preset, blocks, "shadow" in said)


def tier_of(text: str) -> int | None:
    """None: every tier that has no policy of its own. Raises Refused."""
    if text and whole(text) is None:
        raise Refused.because({"tier": f"`{text[:20]}` is no tier: 0 to 5."})
    return whole(text)
