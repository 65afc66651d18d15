"""What people have set up in the instance: a team with a webhook, the two datasets, and a rule for the amounts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from incidents.notifications.routes import set_route
from lakehub.accounts.models import Team
from lakehub.catalog import connections, data_centers
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.partitions import Grain
from quality.generation.rules import set_rule

ACTOR, TEAM, DATA_CENTER = "soak", "shop", "dc1"
RULE_TEST = "rule:amount.range"
EVERY = timedelta(seconds=3)
_AT_ONCE = {
    "freshness": "5d",
    # The source runs ahead of the lake all the while.
    "completeness": "10%",
    "sustain": "0m",
    "debounce": "0m",
    "cadence": "1m",
    "rerun_base": "30s",
    "rerun_cap": "30s",
    "grace": "0m",
}
"""A failure counts when it is seen."""

ORDERS = OnboardingRequest(
    name="orders",
    team=TEAM,
    tier=2,
    connection="shop",
    table="orders",
    data_centers=[DATA_CENTER],
    primary_key=["id"],
    record_key=["id", "day"],
    reference_key="updated_at",
    cursor_column="updated_at",
    partition_column="day",
    grain=Grain.DAY,
    every=EVERY,
    overrides=dict(_AT_ONCE),
)
PRICES = OnboardingRequest(
    name="prices",
    team=TEAM,
    tier=2,
    connection="price-files",
    table="*.parquet",
    data_centers=[DATA_CENTER],
    primary_key=["article", "day"],
    partition_column="day",
    grain=Grain.DAY,
    ingested=False,
    overrides=dict(_AT_ONCE),
)


def onboard_all(*, lake: Path, source_url: str, prices: Path, webhook: str) -> None:
    now = datetime.now(UTC)
    team = Team.objects.create(name=TEAM)
    set_route(team, {"channel": "webhook", "address": webhook}, actor=ACTOR, now=now)
    data_centers.add_data_center(name=DATA_CENTER, lake_uri=lake.as_uri(), actor=ACTOR, now=now)
    for name, plugin, url in (("shop", "sql", source_url), ("price-files", "files", prices.as_uri())):
        connections.add_connection(name=name, plugin=plugin, url=url, team=TEAM, actor=ACTOR, now=now, by_operator=True)
    orders = onboard_dataset(ORDERS, actor=ACTOR, now=now).dataset
    prices_dataset = onboard_dataset(PRICES, actor=ACTOR, now=now).dataset
    set_rule(orders, kind="range", column="amount", parameters={"low": 0, "high": 1_000_000}, actor=ACTOR, now=now)
    set_rule(
        prices_dataset, kind="range", column="price", parameters={"low": 0, "high": 1_000_000}, actor=ACTOR, now=now
    )
