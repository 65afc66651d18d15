"""What people have set up in the instance: a team, a connection to the server, and a dataset for each table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakehub.accounts.models import Team
from lakehub.catalog import connections, data_centers
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.partitions import Grain
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLES, Table

ACTOR, TEAM, DATA_CENTER = "soak", "shop", "dc1"
EVERY = timedelta(seconds=2)


def onboard_all(standing: CaptureStand) -> None:
    now, lake = datetime.now(UTC), (standing.instance.home / "lake").as_uri()
    Team.objects.create(name=TEAM)
    data_centers.add_data_center(name=DATA_CENTER, lake_uri=lake, actor=ACTOR, now=now)
    connections.add_connection(
        name="ops", plugin="mysql", url=standing.source.url, team=TEAM, actor=ACTOR, now=now, by_operator=True
    )
    for table in TABLES:
        onboard_dataset(_request(table), actor=ACTOR, now=now)


def _request(table: Table) -> OnboardingRequest:
    return OnboardingRequest(
        name=table.name,
        team=TEAM,
        tier=2,
        connection="ops",
        table=table.name,
        data_centers=[DATA_CENTER],
        primary_key=list(table.key),
        record_key=list(table.key),
        partition_column=table.partition,
        grain=Grain.DAY if table.partition else Grain.NONE,
        every=EVERY,
        feed_options=table.options,
    )
