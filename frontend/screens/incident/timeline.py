"""Everything that happened to an incident, in one column: moves, runs, messages (also those that were not sent, and why)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend.screens.incident.queries import result_line, unit_label
from incidents.models import Incident, IncidentEvent, Message, MessageState
from quality.models import Result

KINDS = ("all", "moves", "runs", "messages")
_ICONS = {
    "opened": ("incidents", "fail"),
    "reopened": ("incidents", "fail"),
    "acknowledged": ("ack", "running"),
    "resolved": ("pass", "pass"),
    "commented": ("comment", ""),
    "annotated": ("edit", ""),
    "rerun": ("rerun", ""),
    "backfilled": ("rerun", ""),
    "released": ("none", ""),
    "assigned": ("ack", ""),
    "undone": ("rerun", ""),
    "merged": ("arrow", ""),
    "split": ("arrow", ""),
    "reminded": ("mail", ""),
    "snoozed": ("snoozed", ""),
    "snooze_ended": ("snoozed", ""),
    "worse": ("incidents", "fail"),
    "suppressed": ("suppressed", "suppressed"),
    "not_told": ("unsent", ""),
    "message_failed": ("unsent", ""),
    "reported": ("reported", "reported"),
    "asked_producer": ("mail", ""),
    "matched": ("check", ""),
    "rejected": ("none", ""),
    "disputed": ("reported", "reported"),
    "span_opened": ("warn", "warn"),
    "span_closed": ("check", "pass"),
}
_TRIGGER_TEXTS = {
    "schedule": "Scheduled run",
    "rerun": "Rerun",
    "late_data": "Run after a commit",
    "manual": "Run by hand",
    "baseline": "Baseline run",
}
_STATE_OF_OUTCOME = {"pass": "pass", "fail": "fail"}


@dataclass(frozen=True)
class TimelineItem:
    at: datetime
    group: str
    """moves, runs or messages"""
    icon: str
    state: str
    actor: str = ""
    text: str = ""
    strong: str = ""
    """A word of weight after the text: the outcome, `not sent`."""
    more: str = ""
    reason: str = ""
    """Why a message was not sent."""
    quote: str = ""
    is_transition: bool = False
    run: int | None = None
    """The job run that it speaks of."""
    suppressed_by: int | None = None


def timeline_items(incident: Incident, runs: Sequence[Result]) -> list[TimelineItem]:
    """Newest first. Three queries."""
    events = IncidentEvent.objects.filter(incident=incident)[:500]
    written = Message.objects.filter(incident=incident).defer("body", "facts").prefetch_related("deliveries")
    messages = written.order_by("-created_at")[:200]
    items = [*map(_event_item, events), *_run_items(runs), *map(_message_item, messages)]
    # Of things at one instant: first the run, then what it caused, then the message about that.
    order = {"runs": 0, "moves": 1, "messages": 2}
    return sorted(items, key=lambda item: (item.at, order[item.group]), reverse=True)


def counts_by_kind(items: Iterable[TimelineItem]) -> list[tuple[str, int]]:
    listed = list(items)
    return [(kind, sum(kind in ("all", item.group) for item in listed)) for kind in KINDS]


def _event_item(event: IncidentEvent) -> TimelineItem:
    icon, state = _ICONS.get(event.kind, ("check", ""))
    kind_text = event.kind.replace("_", " ")
    if event.kind == "commented":
        return TimelineItem(event.at, "moves", icon, state, actor=event.actor, text="commented", quote=event.text)
    moved = bool(event.becomes) and event.was != event.becomes
    text = kind_text if event.actor else kind_text.capitalize()
    run = event.detail.get("run")
    return TimelineItem(
        event.at, "moves", icon, state, actor=event.actor, text=text, more=event.text, is_transition=moved, run=run
    )


def _run_items(runs: Sequence[Result]) -> Iterable[TimelineItem]:
    for run in runs:
        state = _STATE_OF_OUTCOME.get(run.outcome, "unknown")
        word = run.outcome.replace("_", " ")
        text = f"{_TRIGGER_TEXTS.get(run.trigger, 'Run')} of {unit_label(run.unit)}:"
        yield TimelineItem(run.read_at, "runs", state, state, text=text, strong=word, more=result_line(run))


def _message_item(message: Message) -> TimelineItem:
    to = f"{message.channel.capitalize()} to {message.shown_address}: {message.occasion},"
    held_by = message.held_by_id
    if message.state == MessageState.SENT:
        at, how = message.sent_at or message.created_at, _attempts_text(message)
        return TimelineItem(at, "messages", "mail", "pass", text=to, strong="sent", more=how)
    texts_by_state = {
        MessageState.PENDING: ("waits to be sent", message.error),
        MessageState.HELD: ("not sent yet", message.why or "held by another incident"),
        MessageState.COLLECTED: ("not sent yet", message.why),
        MessageState.DROPPED: ("not sent", message.why),
        MessageState.FAILED: ("could not be sent", message.error or message.why),
    }
    strong, reason = texts_by_state[MessageState(message.state)]
    return TimelineItem(
        message.created_at,
        "messages",
        "unsent",
        "",
        text=to,
        strong=strong,
        more=_attempts_text(message),
        reason=reason,
        suppressed_by=held_by,
    )


def _attempts_text(message: Message) -> str:
    """`202 in 35 ms`, `3 attempts, the last: 503 in 12 ms`; empty where nothing was tried, or it is forgotten."""
    tried = list(message.deliveries.all())
    if not tried:
        return ""
    last = f"{tried[0].status or 'no answer'} in {tried[0].ms:,} ms"
    return last if len(tried) == 1 else f"{len(tried)} attempts, the last: {last}"
