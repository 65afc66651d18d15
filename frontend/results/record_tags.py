"""The tag of the records that a result names: they are rows of data, and not everybody's."""

from __future__ import annotations

from django import template
from django.template.context import Context

from frontend.results.result_details import NamedRecords, ResultDetails
from quality.execution.row_rights import RowRights

register = template.Library()


@register.simple_tag(takes_context=True)
def records_of(context: Context, seen: ResultDetails) -> NamedRecords | None:
    """None where they are not the viewer's to see."""
    return seen.records if seen.named.any and RowRights(context["user"]).may_see(seen.dataset, seen.detail) else None
