"""How many questions the gate was asked, and how many of them were about data that was wrong then, as is known now.

The log holds each question once: (consumer, request, copy, range). What failed is found from what was wrong, not by
looking at each question: two statements, whose cost is what failed and not what was asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Case, Count, IntegerField, Value, When

from incidents.domain.levels import QueryLevel
from incidents.models import GateQuestion

_WRONG = """
SELECT q.id, q.copy_id, q.at FROM incidents_span s
JOIN incidents_incident i ON i.id = s.incident_id
CROSS JOIN incidents_gatequestion q
WHERE i.reported = %(no)s AND i.resolution <> 'false_positive'
  AND s.began_at < %(to)s AND (s.ended_at IS NULL OR s.ended_at > %(from)s)
  AND q.copy_id = s.copy_id
  AND q.at >= CASE WHEN s.began_at > %(from)s THEN s.began_at ELSE %(from)s END
  AND q.at < CASE WHEN s.ended_at < %(to)s THEN s.ended_at ELSE %(to)s END
  AND q.start < s."end" AND s.start < q."end"
UNION
SELECT q.id, q.copy_id, q.at FROM incidents_userreport r
JOIN incidents_incident i ON i.id = r.incident_id
JOIN catalog_datasetcopy c ON c.dataset_id = i.dataset_id AND (r.copy_id IS NULL OR r.copy_id = c.id)
CROSS JOIN incidents_gatequestion q
WHERE i.acknowledged_at IS NOT NULL AND i.resolution <> 'rejected'
  AND r.occurred_at < %(to)s AND (r.fixed_at IS NULL OR r.fixed_at > %(from)s)
  AND q.copy_id = c.id
  AND q.at >= CASE WHEN r.occurred_at > %(from)s THEN r.occurred_at ELSE %(from)s END
  AND q.at < CASE WHEN r.fixed_at < %(to)s THEN r.fixed_at ELSE %(to)s END
  AND q.start < r."end" AND r.start < q."end"
"""
"""A cross join is done in the order in which it is written: what was wrong first, then by index what was asked meanwhile."""


def query_levels(edges: Sequence[datetime], copies: dict[int, int]) -> dict[int, list[QueryLevel]]:
    """By dataset, one between each two of the edges. `copies`: the dataset of each copy that is asked about."""
    steps = len(edges) - 1
    found: defaultdict[int, list[QueryLevel]] = defaultdict(lambda: [QueryLevel()] * steps)
    for copy, at, n in _asked(edges):
        if copy in copies:
            found[copies[copy]][at] += QueryLevel(asked=n)
    for copy, at, n in _failed(edges):
        if copy in copies:
            found[copies[copy]][at] += QueryLevel(failed=n)
    return found


def _asked(edges: Sequence[datetime]) -> list[tuple[int, int, int]]:
    rows = GateQuestion.objects.filter(at__gte=edges[0], at__lt=edges[-1])
    steps = (When(at__lt=edge, then=Value(at)) for at, edge in enumerate(edges[1:]))
    step = Case(*steps, output_field=IntegerField()) if len(edges) > 2 else Value(0)
    return list(rows.annotate(step=step).values_list("copy_id", "step").annotate(n=Count("pk")).order_by())


def _failed(edges: Sequence[datetime]) -> list[tuple[int, int, int]]:
    stored = [connection.ops.adapt_datetimefield_value(edge) for edge in edges]
    named: dict[str, Any] = {"from": stored[0], "to": stored[-1], "no": False}
    named |= {f"edge{at}": edge for at, edge in enumerate(stored[1:])}
    steps = " ".join(f"WHEN at < %(edge{at})s THEN {at}" for at in range(len(edges) - 1))
    counted = f"SELECT copy_id, CASE {steps} END AS step, COUNT(*) FROM ({_WRONG}) AS wrong GROUP BY copy_id, step"  # noqa: S608  # no text of a person
    with connection.cursor() as cursor:
        cursor.execute(counted, named)
        return [(int(copy), int(at), int(n)) for copy, at, n in cursor.fetchall()]
