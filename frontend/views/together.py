"""One action on all incidents that are ticked, and its undo: what cannot be done is said one by one, the rest is done."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend import words
from frontend.acting import actor_of, explained, next_of
from frontend.numbers import whole
from frontend.snoozes import snooze_asked
from incidents import bulk
from incidents.forms import forced
from incidents.undo import undo
from lakehub import wiring

DONE = {
    "acknowledge": "acknowledged",
    "rerun": "asked to run again",
    "wake": "snoozed no longer",
    "assign": "assigned",
    "resolve": "resolved by force",
}


@require_POST
def together(request: HttpRequest) -> HttpResponse:
    ticked = {number for text in request.POST.getlist("incident") if (number := whole(text)) is not None}
    with explained(request):
        ask = _asked(request)
        report = bulk.together(ticked, ask, actor=actor_of(request), now=wiring.clock.now())
        _tell(request, report, DONE.get(ask.action) or f"snoozed {ask.snooze}")
    return redirect(next_of(request) or "incidents")


@require_POST
def take_back(request: HttpRequest, number: int) -> HttpResponse:
    with explained(request):
        _tell(request, undo(number, actor=actor_of(request), now=wiring.clock.now()), "as before")
    return redirect("incidents")


def _asked(request: HttpRequest) -> bulk.Ask:
    said = request.POST
    action = said.get("action", "")
    if action == "resolve":
        return forced(said.get("how", ""), said.get("why", "").strip())
    if action == "snooze":
        wanted = snooze_asked(said)
        return bulk.Ask(action, until=wanted.until, until_worse=wanted.until_worse, failures=wanted.failures)
    return bulk.Ask(action, assignee=said.get("assignee", "").strip())


def _tell(request: HttpRequest, report: bulk.Report, done: str) -> None:
    """What was done with a way back, in a toast; what was not stays on the page as a note."""
    if report.done:
        which = f"#{report.done[0]} is" if len(report.done) == 1 else f"{words.count(len(report.done), 'incident')} are"
        back = reverse("incidents-undo", args=[report.bulk.pk]) if report.bulk else ""
        messages.info(request, f"{which} {done}.", extra_tags=back)
    for kept in report.kept:
        say = messages.warning if kept.code == "conflict" else messages.error
        say(request, f"#{kept.incident}: {kept.why}")
