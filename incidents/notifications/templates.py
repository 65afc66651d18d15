"""The words in which a team wants its messages: read, set, taken back, and tried on what happened last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from incidents.domain.alerting import message_template
from incidents.models import Incident, MessageTemplate
from incidents.notifications.outbox import build_content
from incidents.notifications.recipients import alert_setting_of
from incidents.record.likely_cause import likely_cause
from incidents.record.texts import spans_with_details
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

OTHER_OCCASIONS = "others"
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
    OTHER_OCCASIONS: "each that has no words of its own",
}
MAX_BODY_LENGTH = 8000
EXAMPLE_VALUES = {
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
class TemplateText:
    """What counts for one occasion; `own` is False where it is Lakehub's own or that of the other occasions."""

    occasion: str
    subject: str
    body: str
    own: bool
    changed_at: datetime | None = None
    changed_by: str = ""


@dataclass(frozen=True)
class TemplatePreview:
    subject: str
    body: str
    incident: int | None
    """The one that it was tried on; None: an example."""


def templates_of(team: Team) -> list[TemplateText]:
    """One an occasion, in the order in which they happen. One query."""
    templates_by_occasion = {row.occasion: row for row in MessageTemplate.objects.filter(team=team)}
    return [_template_text(occasion, templates_by_occasion) for occasion in OCCASIONS]


def template_of(team: Team, occasion: str) -> TemplateText:
    """Raises NotFound with the nearest occasion."""
    _check_occasion(occasion)
    return next(words for words in templates_of(team) if words.occasion == occasion)


def set_template(team: Team, occasion: str, *, subject: str, body: str, actor: str, now: datetime) -> TemplateText:
    """Empty: Lakehub's own. Raises Refused with what is wrong, by field, and NotFound."""
    _check_occasion(occasion)
    if problems := template_problems(subject, body):
        raise Refused.for_fields(problems)
    with transaction.atomic():
        MessageTemplate.objects.update_or_create(
            team=team,
            occasion=_stored_occasion(occasion),
            defaults={
                "subject": subject.strip(),
                "body": _normalized_body(body),
                "changed_at": now,
                "changed_by": actor,
            },
        )
        audit_log.record(actor, "set message", f"team:{team.name}", now=now, occasion=occasion, words=subject.strip())
    return template_of(team, occasion)


def reset_template(team: Team, occasion: str, *, actor: str, now: datetime) -> None:
    """The words for the others count again, or Lakehub's own. Raises NotFound."""
    _check_occasion(occasion)
    with transaction.atomic():
        gone, _ = MessageTemplate.objects.filter(team=team, occasion=_stored_occasion(occasion)).delete()
        if not gone:
            raise NotFound(f"Team {team.name} has no words of its own for `{occasion}`.")
        audit_log.record(actor, "reset message", f"team:{team.name}", now=now, occasion=occasion)


def preview_template(team: Team, occasion: str, *, subject: str, body: str, now: datetime) -> TemplatePreview:
    """As it would read of the team's latest incident. Raises Refused and NotFound."""
    _check_occasion(occasion)
    if problems := template_problems(subject, body):
        raise Refused.for_fields(problems)
    incident = _latest_incident(team)
    values: Mapping[str, str] = EXAMPLE_VALUES
    if incident is not None:
        spans = spans_with_details(incident)
        cause, setting = (
            likely_cause(incident, now=now, spans=spans),
            alert_setting_of(incident.dataset, incident.category),
        )
        values = build_content(incident, spans, cause, setting.severity).values
    variables = {**values, "occasion": "opened" if occasion == OTHER_OCCASIONS else occasion}
    in_words = message_template.render_message(subject.strip(), _normalized_body(body), variables)
    return TemplatePreview(*in_words, incident.pk if incident else None)


def template_problems(subject: str, body: str) -> dict[str, str]:
    """Why these words cannot be used, by field."""
    problems = {
        name: message_template.template_problem(text, message_template.VARIABLES)
        for name, text in (("subject", subject), ("body", body))
    }
    if len(subject.strip()) > message_template.MAX_SUBJECT_LENGTH:
        problems["subject"] = (
            f"A subject has {message_template.MAX_SUBJECT_LENGTH} characters at most, not {len(subject.strip())}."
        )
    if "\n" in subject.strip() or "\r" in subject.strip():
        problems["subject"] = "A subject is one line."
    if len(body) > MAX_BODY_LENGTH:
        problems["body"] = f"A message has {MAX_BODY_LENGTH:,} characters at most, not {len(body):,}."
    return {name: why for name, why in problems.items() if why}


def _template_text(occasion: str, templates_by_occasion: Mapping[str, MessageTemplate]) -> TemplateText:
    own = templates_by_occasion.get(_stored_occasion(occasion))
    counts = own or templates_by_occasion.get("")
    subject, body = (counts.subject, counts.body) if counts else ("", "")
    return TemplateText(
        occasion,
        subject or message_template.DEFAULT_SUBJECT,
        body or message_template.DEFAULT_BODY,
        own is not None,
        own.changed_at if own else None,
        own.changed_by if own else "",
    )


def _stored_occasion(occasion: str) -> str:
    return "" if occasion == OTHER_OCCASIONS else occasion


def _check_occasion(occasion: str) -> None:
    if occasion not in OCCASIONS:
        raise NotFound(f"There is no occasion `{occasion}`.{did_you_mean(occasion, OCCASIONS)}")


def _normalized_body(body: str) -> str:
    """A browser sends a carriage return with each line break."""
    return body.replace("\r\n", "\n").strip()


def _latest_incident(team: Team) -> Incident | None:
    related = Incident.objects.select_related("dataset__team", "assignee")
    return related.filter(dataset__team=team, reported=False).order_by("-opened_at", "-pk").first()
