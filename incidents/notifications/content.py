"""A message about an incident: the facts that every one carries, in the words of the team it belongs to.

What may stand in braces is VARIABLES, one line each; docs/channels.md lists them from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from incidents.domain.alerting import message_template
from incidents.models import Incident, MessageTemplate, Span
from incidents.record import texts
from incidents.record.alert_settings import setting_of
from incidents.record.likely_cause import LikelyCause, likely_cause

MAX_SUBJECT_LENGTH = 300
VARIABLES = {
    "number": "of the incident",
    "occasion": "what happened, such as opened or resolved",
    "title": "what is wrong, in a line",
    "dataset": "its name",
    "tier": "0 (highest) to 5",
    "team": "that owns it",
    "category": "freshness, completeness, duplicates, consistency, ingestion or others",
    "severity": "critical, high, medium or low",
    "state": "of the incident",
    "observed": "what was observed, against what the test needs",
    "test": "the test that fails longest",
    "data": "the data that is affected, by data center",
    "since": "when the first failure was",
    "cause": "the likely cause: upstream, a late or failed run, a schema change",
    "cause_link": "where to look at it",
    "next": "when it is tested again",
    "eta": "when recovery is expected",
    "assignee": "who has it",
    "resolution": "how it was resolved",
    "actor": "who did what is told",
    "text": "what they said",
    "link": "the page of the incident",
}
DEFAULT_SUBJECT = "[{occasion}] {title}"
DEFAULT_BODY = """{title}

Dataset: {dataset}, tier {tier}, team {team}
Category: {category}, severity {severity}
Observed: {observed}
Data: {data}
Since: {since}
Likely cause: {cause} {cause_link}
State: {state}
By: {actor}
Resolved: {resolution}
Why: {text}
Recovery expected: {eta}
Next rerun: {next}

{link}"""
REQUIRED_LINES = {
    "dataset": "Dataset: {dataset}",
    "category": "Category: {category}",
    "observed": "Observed: {observed}",
    "data": "Data: {data}",
    "since": "Since: {since}",
    "cause": "Likely cause: {cause} {cause_link}",
    "link": "{link}",
}
"""What every message says: where a template leaves one out, its line stands below."""


@dataclass(frozen=True)
class RenderedMessage:
    subject: str
    body: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class MessageContent:
    """All that is said of an incident at one time; `render` puts it into the words for an occasion."""

    values: dict[str, str]
    facts: dict[str, Any]
    templates: dict[str, MessageTemplate]

    def render(self, occasion: str) -> RenderedMessage:
        own = self.templates.get(occasion) or self.templates.get("")
        values = self.values | {"occasion": occasion}
        subject, body = (own.subject, own.body) if own else (DEFAULT_SUBJECT, DEFAULT_BODY)
        return RenderedMessage(*render_message(subject or DEFAULT_SUBJECT, body or DEFAULT_BODY, values), self.facts)


def render_message(subject: str, body: str, values: dict[str, str]) -> tuple[str, str]:
    """Subject and body; what every message says is never left out."""
    left_out = [line for name, line in REQUIRED_LINES.items() if name not in message_template.variables_in(body)]
    whole = "\n".join([body, "", *left_out]) if left_out else body
    return message_template.render_line(subject, values)[:MAX_SUBJECT_LENGTH], message_template.render_text(
        whole, values
    )


def build_content(
    incident: Incident, spans: Sequence[Span], *, now: datetime, actor: str = "", text: str = ""
) -> MessageContent:
    """`spans` come with their units, tests, versions and copies. About ten queries."""
    cause = likely_cause(incident, now=now, spans=spans)
    severity = setting_of(incident.dataset, incident.category).severity.value
    values = variable_values(incident, spans, cause, severity=severity, actor=actor, text=text)
    own = MessageTemplate.objects.filter(team=incident.dataset.team_id)
    return MessageContent(values, _facts(incident, values, cause), {template.occasion: template for template in own})


def variable_values(
    incident: Incident, spans: Sequence[Span], cause: LikelyCause, *, severity: str, actor: str, text: str
) -> dict[str, str]:
    """One finished text for each variable but the occasion; empty where there is nothing to say."""
    dataset = incident.dataset
    active = [span for span in spans if span.ended_at is None]
    about = sorted(active or spans, key=lambda span: (span.began_at, span.start))
    goes_on = incident.resolved_at is None
    due = [span.unit.due_at for span in active if goes_on and span.unit.due_at is not None]
    return {
        "number": str(incident.pk),
        "title": incident.title,
        "dataset": dataset.name,
        "tier": str(dataset.tier),
        "team": dataset.team.name,
        "category": incident.get_category_display(),
        "severity": severity,
        "state": incident.get_state_display(),
        "observed": texts.observed_text(about, dataset),
        "test": about[0].unit.test.title if about else "",
        "data": texts.ranges_text(about, dataset) if about else texts.reported_range_text(incident),
        "since": _utc_text(min((span.began_at for span in about), default=incident.opened_at)),
        "cause": cause.text,
        "cause_link": f"{settings.LAKEHUB_BASE_URL}{cause.link}" if cause.link else "",
        "next": f"{_utc_text(min(due))}; a pass resolves it" if due else "",
        "eta": _utc_text(incident.eta) if incident.eta else "",
        "assignee": incident.assignee.get_username() if incident.assignee else "",
        "resolution": incident.get_resolution_display() if incident.resolution else "",
        "actor": actor,
        "text": text,
        "link": texts.incident_url(incident),
    }


def _facts(incident: Incident, values: dict[str, str], cause: LikelyCause) -> dict[str, Any]:
    """For programs: plain JSON, with instants in ISO 8601."""
    value_names = ("severity", "observed", "test", "data", "since", "actor", "text")
    return {
        "id": incident.pk,
        "url": values["link"],
        "dataset": incident.dataset.name,
        "tier": incident.dataset.tier,
        "team": incident.dataset.team.name,
        "category": incident.category,
        "state": incident.state,
        "title": incident.title,
        "opened_at": incident.opened_at.isoformat(),
        "resolved_at": incident.resolved_at.isoformat() if incident.resolved_at else None,
        "eta": incident.eta.isoformat() if incident.eta else None,
        "resolution": incident.resolution,
        "cause": cause.text,
        "cause_kind": cause.kind.value,
        "cause_url": values["cause_link"],
        **{name: values[name] for name in value_names},
    }


def _utc_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
