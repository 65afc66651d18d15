"""All of a dataset at once: its tap in the binlog, its copies in the changelog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.moves import server_of_capture
from ingestion.models import Capture, TapServer
from ingestion.positions.places import CopyPlace, place_of_copy
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


@dataclass(frozen=True)
class Positions:
    """`tap` None: no tap has taken it on. `problems`: by data center, why the place of a copy is not known."""

    tap: TapServer | None
    copies: Sequence[CopyPlace]
    problems: Mapping[str, str]


def positions_of(dataset: Dataset) -> Positions:
    """Raises Refused where it is not captured, and Busy."""
    if not is_captured_feed(dataset.feed_or_none):
        raise Refused(f"Dataset `{dataset.name}` is not captured: its rows come from no changelog.")
    places, problems = [], {}
    for copy in dataset.copies.select_related("data_center", "dataset").order_by("data_center__name"):
        try:
            places.append(place_of_copy(copy))
        except Refused as problem:
            problems[copy.data_center.name] = str(problem)
    return Positions(_tap_of(dataset), places, problems)


def _tap_of(dataset: Dataset) -> TapServer | None:
    capture = Capture.objects.filter(feed__dataset=dataset).first()
    address = "" if capture is None else server_of_capture(capture)
    return TapServer.objects.filter(address=address).first() if address else None
