"""What the console asks before it does something to the incidents that are ticked."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime

from incidents.lifecycle.bulk.apply import BulkRequest, forced_resolution
from incidents.models import FalsePositive, Resolution


class SnoozeForm(forms.Form):
    """Messages about them wait until then; verdicts and the gate's answers stay."""

    until = forms.SplitDateTimeField(widget=AdminSplitDateTime(), help_text="In UTC.")

    def bulk_request(self) -> BulkRequest:
        return BulkRequest("snooze", until=cast("datetime", self.cleaned_data["until"]))


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

    def bulk_request(self) -> BulkRequest:
        return forced_resolution(self.cleaned_data["how"], self.cleaned_data["why"])
