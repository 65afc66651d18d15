"""Who is told of an incident: the team that owns the dataset, by its routes, and who follows it; by how much it matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from incidents.domain.alerting import routing
from incidents.domain.alerting.routing import AlertLabels, AlertSetting, AlertTemplate, Recipient, unique_recipients
from incidents.models import Alert, Incident, Message, MessageState, Route, Span, Subscription
from incidents.record.downstream_impact import DownstreamDataset, downstream_datasets
from lakehub.accounts.models import Team, User
from lakehub.catalog.models import Dataset
from quality.domain.slas import TIERS, BadOverride, slas_for_tier

LOG_CHANNEL = "log"
"""Where messages of teams go that named no address: it reaches nobody."""
OPENING_OCCASIONS = ("opened", "reopened")
"""Occasions that may be held; the others are told only to whom one of these was sent."""
DIRECT_OCCASIONS = ("mentioned", "assigned", "rejected")
"""Said to one person; whether they were told that it began does not matter."""
OCCASIONS_FOLLOWED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType({"resolved": (), "released": ("acknowledged",)})
"""What is told also to whom these were sent, whatever routes there are now; none are named: to whom anything was."""
FOLLOWED_OCCASIONS = (*OPENING_OCCASIONS, "eta", "resolved")
"""What subscribers hear of a dataset's incidents."""
FOLLOWED_REPORT_OCCASIONS = ("acknowledged", "eta", "resolved")
"""Of a user's report, once the producers said that it is true; before that it is theirs to answer."""
DOWNSTREAM_REASON = "owner of"
"""How the reason begins for which a team downstream is told."""


# What a failure is worth


def alert_setting_of(dataset: Dataset, category: str) -> AlertSetting:
    """The alert of the dataset and category; the template where none is made yet."""
    alert = Alert.objects.filter(dataset=dataset, category=category).first()
    return alert.setting if alert is not None else AlertSetting(alert_template_of(dataset, category).severity)


def alert_template_of(dataset: Dataset, category: str) -> AlertTemplate:
    """By the tier and its urgency; overrides that cannot be read do not count."""
    try:
        slas = slas_for_tier(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)
    except BadOverride:
        slas = TIERS[dataset.tier]
    return routing.alert_template(dataset.tier, slas.severity, category)


# The team that owns the dataset


def owning_team_recipients(incident: Incident, setting: AlertSetting) -> list[Recipient]:
    """Nobody where the alert is muted, or no route takes it: `no_recipient_reason` says which."""
    labels = AlertLabels(incident.dataset.tier, incident.category, setting.severity)
    return [] if setting.muted else team_recipients(incident.dataset.team, labels)


def no_recipient_reason(incident: Incident, setting: AlertSetting) -> str:
    dataset = incident.dataset
    if setting.muted:
        return f"alerts of {dataset.name} in {incident.category} are muted: {setting.why}"
    labels = AlertLabels(dataset.tier, incident.category, setting.severity)
    return f"no route of team {dataset.team.name} takes {labels}"


def team_recipients(
    team: Team, labels: AlertLabels, *, why: str = "", routes: Sequence[Route] | None = None
) -> list[Recipient]:
    """Who in the team is told: its routes, or its own e-mail address and webhook where it has none.

    `why` goes before what made them recipients. `routes` are all of the team's, where the caller has read them.
    """
    team_routes = list(Route.objects.filter(team=team)) if routes is None else routes
    before = f"{why}: " if why else ""
    if not team_routes:
        return _default_recipients(team, before)
    return [
        Recipient(route.channel, route.address, f"{before}route of team {team.name}", route.pk, route.may_delay)
        for route in team_routes
        if route.enabled and route.matcher.matches(labels)
    ]


def _default_recipients(team: Team, before: str) -> list[Recipient]:
    addresses = [("email", team.email), ("webhook", team.webhook_url)]
    why = f"{before}team {team.name}"
    recipients = [Recipient(channel, address, why) for channel, address in addresses if address]
    return recipients or [Recipient(LOG_CHANNEL, team.name, f"{why}, which named no address")]


# Who follows it


def with_followers(owners: Sequence[Recipient], incident: Incident, occasion: str) -> list[Recipient]:
    """The owners, who follows it, and of an end who heard of the beginning, by whatever route it was."""
    before = earlier_recipients(incident, *OCCASIONS_FOLLOWED_BY[occasion]) if occasion in OCCASIONS_FOLLOWED_BY else ()
    return unique_recipients([*owners, *_following_recipients(incident, occasion), *before])


def earlier_recipients(incident: Incident, *occasions: str) -> list[Recipient]:
    """Who was told one of these, or will be; where none is named: anything that was not said to one person."""
    messages = Message.objects.filter(incident=incident).exclude(state=MessageState.DROPPED)
    messages = messages.filter(occasion__in=occasions) if occasions else messages.exclude(occasion__in=DIRECT_OCCASIONS)
    rows = messages.order_by("pk").values_list("channel", "address", "recipient_reason", "route_id")
    return unique_recipients(Recipient(*row) for row in rows)


def _following_recipients(incident: Incident, occasion: str) -> Iterable[Recipient]:
    """Who is told of it besides the owning team, and why."""
    if incident.reported and occasion in FOLLOWED_REPORT_OCCASIONS:
        yield from reporter_recipients(incident)
    if occasion in (FOLLOWED_REPORT_OCCASIONS if incident.reported else FOLLOWED_OCCASIONS):
        yield from _subscriber_recipients(incident)
    begins = occasion == "acknowledged" if incident.reported else occasion in OPENING_OCCASIONS
    if begins:
        yield from _downstream_team_recipients(incident)


def personal_recipient(user: User, why: str) -> Recipient:
    """Their e-mail address; who has none is told nowhere, and the timeline says so."""
    name = user.get_username()
    if user.email:
        return Recipient("email", user.email, f"{why}: {name}")
    return Recipient(LOG_CHANNEL, name, f"{why}: {name}, who has no e-mail address")


def reporter_recipients(incident: Incident) -> Iterator[Recipient]:
    """Who reported it, if they still have an account."""
    who = incident.report.reporter
    if who is not None and who.is_active:
        yield personal_recipient(who, "reported it")


def _subscriber_recipients(incident: Incident) -> Iterator[Recipient]:
    rows = Subscription.objects.filter(dataset=incident.dataset_id, user__is_active=True).select_related("user")
    for row in rows.order_by("user__username"):
        yield personal_recipient(row.user, "subscribed")


def _downstream_team_recipients(incident: Incident) -> Iterator[Recipient]:
    """Teams other than the owner, each once an incident, by what of theirs lies nearest."""
    if Message.objects.filter(incident=incident, recipient_reason__startswith=DOWNSTREAM_REASON).exists():
        return
    spans = Span.objects.filter(incident=incident, ended_at=None).select_related("copy")
    nearest: dict[int, DownstreamDataset] = {}
    for reached in downstream_datasets(incident, spans):
        if reached.dataset.team_id != incident.dataset.team_id:
            nearest.setdefault(reached.dataset.team_id, reached)
    for reached in nearest.values():
        dataset = reached.dataset
        labels = AlertLabels(dataset.tier, incident.category, alert_setting_of(dataset, incident.category).severity)
        yield from team_recipients(dataset.team, labels, why=f"{DOWNSTREAM_REASON} {reached}")
