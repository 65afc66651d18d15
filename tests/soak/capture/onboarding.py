"""What people have set up in the instance: a team, connections to the servers, and a dataset for each table and topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehub.accounts.models import Team
from lakehub.catalog import connections, data_centers
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.partitions import Grain
from tests.soak.capture.cells import CELL_KEY, CELLS
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLES
from tests.soak.capture.topic import TOPIC, TOPIC_KEY

ACTOR, TEAM, DATA_CENTER = "soak", "shop", "dc1"
EVERY = timedelta(seconds=2)


def onboard_all(standing: CaptureStand) -> None:
    now, lake = datetime.now(UTC), (standing.instance.home / "lake").as_uri()
    Team.objects.create(name=TEAM)
    data_centers.add_data_center(name=DATA_CENTER, lake_uri=lake, actor=ACTOR, now=now)
    urls = {("ops", "mysql"): standing.source.url, ("cells", "schemaless"): standing.source.url}
    if standing.topic is not None:
        urls["bus", "kafka"] = standing.topic.url
    for (name, plugin), url in urls.items():
        connections.add_connection(name=name, plugin=plugin, url=url, team=TEAM, actor=ACTOR, now=now, by_operator=True)
    for table in TABLES:
        grain = Grain.DAY if table.partition else Grain.NONE
        more = {"partition_column": table.partition, "grain": grain, "feed_options": table.options}
        _onboard("ops", table.name, table.key, now, **more)
    _onboard("cells", CELLS, (CELL_KEY,), now)
    if standing.topic is not None:
        _onboard("bus", TOPIC, (TOPIC_KEY,), now, feed_options={"topic_key": "message"})


def _onboard(connection: str, table: str, key: Sequence[str], now: datetime, **more: Any) -> None:
    request = OnboardingRequest(
        name=table,
        team=TEAM,
        tier=2,
        connection=connection,
        table=table,
        data_centers=[DATA_CENTER],
        primary_key=list(key),
        record_key=list(key),
        every=EVERY,
        **{"grain": Grain.NONE, **more},
    )
    onboard_dataset(request, actor=ACTOR, now=now)
