"""One action on all incidents that are ticked, and its undo: what cannot be done is said one by one, the rest is done."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.timezone import get_current_timezone
from django.views.decorators.http import require_POST

from frontend.components.snooze_form import parse_snooze
from frontend.ui import words
from frontend.ui.form_actions import actor_of, errors_as_messages, next_url_of
from frontend.ui.whole_numbers import parse_whole_number
from incidents.lifecycle.bulk import apply
from incidents.lifecycle.bulk.apply import forced_resolution
from incidents.lifecycle.bulk.undo import undo_bulk_action
from lakehub import wiring

DONE_TEXTS = {
    "acknowledge": "acknowledged",
    "rerun": "asked to run again",
    "wake": "snoozed no longer",
    "assign": "assigned",
    "resolve": "resolved by force",
}


@require_POST
def act_on_incidents(request: HttpRequest) -> HttpResponse:
    ticked = {number for text in request.POST.getlist("incident") if (number := parse_whole_number(text)) is not None}
    with errors_as_messages(request):
        ask = _parse_action(request)
        report = apply.apply_to_many(ticked, ask, actor=actor_of(request), now=wiring.clock.now())
        _report_outcome(request, report, DONE_TEXTS.get(ask.action) or f"snoozed {ask.snooze}")
    return redirect(next_url_of(request) or "incidents")


@require_POST
def undo(request: HttpRequest, number: int) -> HttpResponse:
    with errors_as_messages(request):
        _report_outcome(request, undo_bulk_action(number, actor=actor_of(request), now=wiring.clock.now()), "as before")
    return redirect("incidents")


def _parse_action(request: HttpRequest) -> apply.BulkRequest:
    posted = request.POST
    action = posted.get("action", "")
    if action == "resolve":
        return forced_resolution(posted.get("how", ""), posted.get("why", "").strip())
    if action.partition("-")[0] == "snooze":
        ends = action.partition("-")[2] or posted.get("ends", "")
        snooze = parse_snooze(posted, ends, zone=get_current_timezone(), now=wiring.clock.now())
        return apply.BulkRequest("snooze", until=snooze.until, until_worse=snooze.until_worse, failures=snooze.failures)
    return apply.BulkRequest(action, assignee=posted.get("assignee", "").strip())


def _report_outcome(request: HttpRequest, report: apply.BulkReport, done: str) -> None:
    """What was done with a way back, in a toast; what was not stays on the page as a note."""
    if report.done:
        which = f"#{report.done[0]} is" if len(report.done) == 1 else f"{words.count(len(report.done), 'incident')} are"
        back = reverse("incidents-undo", args=[report.bulk.pk]) if report.bulk else ""
        messages.info(request, f"{which} {done}.", extra_tags=back)
    for skipped in report.skipped:
        say = messages.warning if skipped.code == "conflict" else messages.error
        say(request, f"#{skipped.incident}: {skipped.why}")
