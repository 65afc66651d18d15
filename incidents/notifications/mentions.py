"""`@name` in a comment tells a person or a team of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from incidents.domain.alerting.routing import AlertLabels, Recipient
from incidents.models import Incident
from incidents.notifications import outbox
from incidents.notifications.recipients import alert_setting_of, personal_recipient, team_recipients
from lakehub.accounts.models import Team, User
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

_CODE = re.compile(r"`[^`]*`")
_NAME = re.compile(r"(?<![\w@.+-])@(\w[\w.@+-]*)")
"""Not the middle of an e-mail address; what is written as `code` mentions nobody."""
MAX_MENTIONS = 20


def names_in(text: str) -> list[str]:
    """Whom the text mentions, each once, in order; a full stop after a name is the sentence's."""
    names = (match.group(1).rstrip(".-+@") for match in _NAME.finditer(_CODE.sub(" ", text)))
    return list(dict.fromkeys(name for name in names if name))


def mentioned_recipients(text: str, incident: Incident) -> list[Recipient]:
    """Raises Refused for a name that nobody has: else they would wait for an answer from nobody."""
    names = names_in(text)
    if len(names) > MAX_MENTIONS:
        raise Refused.for_fields(
            {"text": f"{len(names)} are too many to be mentioned at once; {MAX_MENTIONS} at most."}
        )
    people = {user.get_username(): user for user in User.objects.filter(username__in=names, is_active=True)}
    teams = {team.name: team for team in Team.objects.filter(name__in=names)}
    unknown = [name for name in names if name not in people and name not in teams]
    if unknown:
        raise Refused.for_fields({"text": " ".join(_unknown_name_text(name, incident) for name in unknown)})
    return [recipient for name in names for recipient in _recipients_of(people.get(name) or teams[name], incident)]


def notify_mentioned(incident: Incident, recipients: list[Recipient], *, text: str, actor: str, now: datetime) -> None:
    """Call it in the transaction of the comment."""
    if recipients:
        outbox.enqueue_to(incident, "mentioned", recipients, now=now, actor=actor, text=f"{actor} wrote: {text}")


def _recipients_of(user_or_team: User | Team, incident: Incident) -> Iterator[Recipient]:
    if isinstance(user_or_team, User):
        yield personal_recipient(user_or_team, "mentioned")
    else:
        severity = alert_setting_of(incident.dataset, incident.category).severity
        labels = AlertLabels(incident.dataset.tier, incident.category, severity)
        yield from team_recipients(user_or_team, labels, why="mentioned")


def _unknown_name_text(name: str, incident: Incident) -> str:
    team = incident.dataset.team
    near = [team.name, *team.members.values_list("username", flat=True)]
    return f"There is nobody and no team called `{name}`.{did_you_mean(name, near)} Write `@{name}` as code to mention nobody."
