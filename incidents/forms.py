"""What the console asks before it does something to the incidents that are ticked."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime

from incidents.bulk import Ask
from incidents.models import FalsePositive, Resolution


class SnoozeForm(forms.Form):
    """Messages about them wait until then; verdicts and the gate's answers stay."""

    until = forms.SplitDateTimeField(widget=AdminSplitDateTime(), help_text="In UTC.")

    def ask(self) -> Ask:
        return Ask("snooze", until=cast("datetime", self.cleaned_data["until"]))


class ResolveForm(forms.Form):
    """By force: their units are waived until they pass or their test gets a new version. A pass resolves an incident by itself."""

    how = forms.ChoiceField(
        label="Because",
        widget=forms.RadioSelect,
        choices=[
            *((kind.value, f"False positive: {kind.label}") for kind in FalsePositive),
            (Resolution.ACCEPTED.value, "True, and accepted: it will not be repaired"),
        ],
    )
    why = forms.CharField(label="Reason", widget=forms.Textarea(attrs={"rows": 3}), max_length=1000)

    def ask(self) -> Ask:
        return forced(self.cleaned_data["how"], self.cleaned_data["why"])


def forced(how: str, why: str) -> Ask:
    """`how` is a kind of false positive, or `accepted`."""
    if how == Resolution.ACCEPTED:
        return Ask("resolve", resolution=Resolution.ACCEPTED.value, why=why)
    return Ask("resolve", resolution=Resolution.FALSE_POSITIVE.value, false_positive=how, why=why)
