"""The words in which a team wants its messages: read, set, taken back, and tried on what happened last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from incidents.domain import substitution
from incidents.messages import outbox, telling
from incidents.models import Incident, MessageTemplate
from lakehub.accounts import audit
from lakehub.accounts.models import Team
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

OTHERS = "others"
"""What the words for every occasion that has none of its own are called."""
OCCASIONS = {
    "opened": "it began",
    "worse": "more data fails, or it matters more",
    "acknowledged": "somebody has it",
    "released": "nobody has it any more",
    "eta": "when it is expected to be over has changed",
    "resolved": "it is over",
    "reopened": "it began again",
    "reported": "a person reported what no test saw, and the owners are asked",
    "rejected": "to who reported it and who was asked: nothing is wrong",
    "assigned": "to who has it now",
    "mentioned": "to who is named in a comment",
    OTHERS: "each that has no words of its own",
}
LONGEST_BODY = 8000
EXAMPLE = {
    "number": "214",
    "title": "flights: Rows as in dc1: 98.98% (975 of 985), needs > 99.9% (dc2, 2026-11-16)",
    "dataset": "flights",
    "tier": "1",
    "team": "flight-ops",
    "category": "cross-dc consistency",
    "severity": "high",
    "state": "Open",
    "observed": "dc2 2026-11-16: 98.98% (975 of 985), needs > 99.9%",
    "test": "Rows as in dc1",
    "data": "dc2: 2026-11-16",
    "since": "2026-11-17 12:40 UTC",
    "cause": "late run: the last run ended at 2026-11-17 11:02 UTC",
    "cause_link": "https://lakehub.example.org/datasets/flights/ingestion",
    "next": "2026-11-17 14:59 UTC; a pass resolves it",
    "eta": "",
    "assignee": "",
    "resolution": "",
    "actor": "",
    "text": "",
    "link": "https://lakehub.example.org/incidents/214",
}
"""For a team that never had an incident."""


@dataclass(frozen=True)
class Words:
    """What counts for one occasion; `own` is False where it is Lakehub's own or that of the other occasions."""

    occasion: str
    subject: str
    body: str
    own: bool
    changed_at: datetime | None = None
    changed_by: str = ""


@dataclass(frozen=True)
class Preview:
    subject: str
    body: str
    incident: int | None
    """The one that it was tried on; None: an example."""


def of_team(team: Team) -> list[Words]:
    """One an occasion, in the order in which they happen. One query."""
    kept = {row.occasion: row for row in MessageTemplate.objects.filter(team=team)}
    return [_words(occasion, kept) for occasion in OCCASIONS]


def of_occasion(team: Team, occasion: str) -> Words:
    """Raises NotFound with the nearest occasion."""
    _check_occasion(occasion)
    return next(words for words in of_team(team) if words.occasion == occasion)


def put(team: Team, occasion: str, *, subject: str, body: str, actor: str, now: datetime) -> Words:
    """Empty: Lakehub's own. Raises Refused with what is wrong, by field, and NotFound."""
    _check_occasion(occasion)
    if problems := problems_of(subject, body):
        raise Refused.because(problems)
    with transaction.atomic():
        MessageTemplate.objects.update_or_create(
            team=team,
            occasion=_key(occasion),
            defaults={"subject": subject.strip(), "body": _lines(body), "changed_at": now, "changed_by": actor},
        )
        audit.record(actor, "set message", f"team:{team.name}", now=now, occasion=occasion, words=subject.strip())
    return of_occasion(team, occasion)


def reset(team: Team, occasion: str, *, actor: str, now: datetime) -> None:
    """The words for the others count again, or Lakehub's own. Raises NotFound."""
    _check_occasion(occasion)
    with transaction.atomic():
        gone, _ = MessageTemplate.objects.filter(team=team, occasion=_key(occasion)).delete()
        if not gone:
            raise NotFound(f"Team {team.name} has no words of its own for `{occasion}`.")
        audit.record(actor, "reset message", f"team:{team.name}", now=now, occasion=occasion)


def preview(team: Team, occasion: str, *, subject: str, body: str, now: datetime) -> Preview:
    """As it would read of the team's latest incident. Raises Refused and NotFound."""
    _check_occasion(occasion)
    if problems := problems_of(subject, body):
        raise Refused.because(problems)
    incident = _latest(team)
    values: Mapping[str, str] = EXAMPLE
    if incident is not None:
        values = telling.tell(incident, outbox.spans_to_tell(incident), now=now).values
    said = {**values, "occasion": "opened" if occasion == OTHERS else occasion}
    in_words = telling.worded(subject.strip() or telling.SUBJECT, _lines(body) or telling.BODY, said)
    return Preview(*in_words, incident.pk if incident else None)


def problems_of(subject: str, body: str) -> dict[str, str]:
    """Why these words cannot be used, by field."""
    found = {
        name: substitution.problem(text, telling.VARIABLES) for name, text in (("subject", subject), ("body", body))
    }
    if len(subject.strip()) > telling.SUBJECT_LENGTH:
        found["subject"] = f"A subject has {telling.SUBJECT_LENGTH} characters at most, not {len(subject.strip())}."
    if "\n" in subject.strip() or "\r" in subject.strip():
        found["subject"] = "A subject is one line."
    if len(body) > LONGEST_BODY:
        found["body"] = f"A message has {LONGEST_BODY:,} characters at most, not {len(body):,}."
    return {name: why for name, why in found.items() if why}


def _words(occasion: str, kept: Mapping[str, MessageTemplate]) -> Words:
    own = kept.get(_key(occasion))
    counts = own or kept.get("")
    subject, body = (counts.subject, counts.body) if counts else ("", "")
    return Words(
        occasion,
        subject or telling.SUBJECT,
        body or telling.BODY,
        own is not None,
        own.changed_at if own else None,
        own.changed_by if own else "",
    )


def _key(occasion: str) -> str:
    return "" if occasion == OTHERS else occasion


def _check_occasion(occasion: str) -> None:
    if occasion not in OCCASIONS:
        raise NotFound(f"There is no occasion `{occasion}`.{did_you_mean(occasion, OCCASIONS)}")


def _lines(body: str) -> str:
    """A browser sends a carriage return with each line break."""
    return body.replace("\r\n", "\n").strip()


def _latest(team: Team) -> Incident | None:
    related = Incident.objects.select_related("dataset__team", "assignee")
    return related.filter(dataset__team=team, reported=False).order_by("-opened_at", "-pk").first()
