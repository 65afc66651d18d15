"""`@name` in a comment tells a person or a team of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from incidents.domain.routing import Recipient
from incidents.messages import outbox
from incidents.messages.addressees import of_team
from incidents.messages.subscriptions import person
from incidents.models import Incident
from incidents.tones import matter_of, tone_of
from lakehub.accounts.models import Team, User
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

_CODE = re.compile(r"`[^`]*`")
_NAME = re.compile(r"(?<![\w@.+-])@(\w[\w.@+-]*)")
"""Not the middle of an e-mail address; what is written as `code` mentions nobody."""
MOST = 20


def names_in(text: str) -> list[str]:
    """Whom the text mentions, each once, in order; a full stop after a name is the sentence's."""
    found = (match.group(1).rstrip(".-+@") for match in _NAME.finditer(_CODE.sub(" ", text)))
    return list(dict.fromkeys(name for name in found if name))


def told(text: str, incident: Incident) -> list[Recipient]:
    """Raises Refused for a name that nobody has: else they would wait for an answer from nobody."""
    names = names_in(text)
    if len(names) > MOST:
        raise Refused.because({"text": f"{len(names)} are too many to be mentioned at once; {MOST} at most."})
    people = {user.get_username(): user for user in User.objects.filter(username__in=names, is_active=True)}
    teams = {team.name: team for team in Team.objects.filter(name__in=names)}
    unknown = [name for name in names if name not in people and name not in teams]
    if unknown:
        raise Refused.because({"text": " ".join(_unknown(name, incident) for name in unknown)})
    return [one for name in names for one in _of(people.get(name) or teams[name], incident)]


def tell(incident: Incident, recipients: list[Recipient], *, text: str, actor: str, now: datetime) -> None:
    """Call it in the transaction of the comment."""
    if recipients:
        outbox.tell(incident, "mentioned", recipients, now=now, actor=actor, text=f"{actor} wrote: {text}")


def _of(one: User | Team, incident: Incident) -> Iterator[Recipient]:
    if isinstance(one, User):
        yield person(one, "mentioned")
    else:
        tone = tone_of(incident.dataset, incident.category)
        yield from of_team(one, matter_of(incident.dataset, incident.category, tone), why="mentioned")


def _unknown(name: str, incident: Incident) -> str:
    team = incident.dataset.team
    near = [team.name, *team.members.values_list("username", flat=True)]
    return f"There is nobody and no team called `{name}`.{did_you_mean(name, near)} Write `@{name}` as code to mention nobody."
