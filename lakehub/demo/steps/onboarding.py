"""Five datasets are onboarded in two data centers, by the use case that the pages and the API call."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lakehub.accounts.models import Membership, Role, Team, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog import connections, data_centers
from lakehub.catalog.models import DatasetKind
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest, UpstreamRequest
from lakehub.demo.play.gate_client import GateClient
from lakehub.demo.play.story_context import StoryContext
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain

TITLE = "Five datasets onboarded, in two data centers"

ACTOR = "ines"
PASSWORD = "flights-2013"  # noqa: S105  of the demo's own users, on loopback
DATA_CENTERS = ("dc1", "dc2")
MONTHLY = timedelta(days=30)
HOURLY = timedelta(hours=1)

AIRLINES = OnboardingRequest(
    name="airlines",
    description="The carriers, by their two letters.",
    team="reference-data",
    tier=4,
    connection="ops",
    table="airlines",
    data_centers=DATA_CENTERS,
    primary_key=["carrier"],
    reference_key="updated_at",
    cursor_column="updated_at",
    every=MONTHLY,
)
AIRPORTS = replace(
    AIRLINES, name="airports", table="airports", description="Airports with their time zones.", primary_key=["faa"]
)
PLANES = replace(
    AIRLINES,
    name="planes",
    table="planes",
    tier=3,
    description="The planes that are registered, by tail number.",
    primary_key=["tailnum"],
)
WEATHER = OnboardingRequest(
    name="weather",
    description="A report an hour from each of New York's airports. A row is never changed.",
    team="weather-desk",
    tier=2,
    connection="ops",
    table="weather",
    data_centers=DATA_CENTERS,
    kind=DatasetKind.APPEND_ONLY,
    primary_key=["origin", "year", "month", "day", "hour"],
    record_key=["id"],
    cursor_column="id",
    event_time="recorded_at",
    every=HOURLY,
    overrides={"duplicates": "0%"},
)
FLIGHTS = OnboardingRequest(
    name="flights",
    description="Every departure from New York: scheduled, departed, landed, diverted or cancelled.",
    team="flight-ops",
    tier=1,
    connection="ops",
    table="flights",
    data_centers=DATA_CENTERS,
    primary_key=["carrier", "flight", "origin", "flight_date"],
    reference_key="updated_at",
    cursor_column="updated_at",
    partition_column="flight_date",
    grain=Grain.DAY,
    partition_tz="America/New_York",
    event_time="updated_at",
    upstream=[UpstreamRequest("planes"), UpstreamRequest("airlines"), UpstreamRequest("airports")],
    every=HOURLY,
)
DATASETS = (AIRLINES, AIRPORTS, PLANES, WEATHER, FLIGHTS)


def play(stage: StoryContext) -> None:
    now = stage.now()
    user = _create_people()
    for name in DATA_CENTERS:
        lake = (stage.instance.folder / "lakes" / name).as_uri()
        data_centers.add_data_center(name=name, lake_uri=lake, actor=ACTOR, now=now)
        stage.gate_clients[name] = GateClient(stage.instance.url, _issue_token(name, user, now))
    connections.add_connection(
        name="ops", plugin="sql", url=stage.operations.url, team="flight-ops", actor=ACTOR, now=now, by_operator=True
    )
    _show_refused_mistake(stage, now)
    for application in DATASETS:
        onboarded = onboard_dataset(application, actor=ACTOR, now=now)
        evidence = onboarded.evidence
        key = (
            f"{', '.join(application.primary_key)}: {evidence.distinct:,} values in {evidence.rows:,} rows"
            if evidence
            else ""
        )
        stage.narrator.say(f"{application.name}, tier {application.tier}, {application.team}; key {key}")


def _show_refused_mistake(stage: StoryContext, now: datetime) -> None:
    """A key that is misspelt is refused by name, and nothing is half done."""
    mistaken = replace(FLIGHTS, primary_key=["carrier", "fligth", "origin", "flight_date"], upstream=())
    try:
        onboard_dataset(mistaken, actor=ACTOR, now=now)
    except Refused as refusal:
        stage.narrator.check(f"a misspelt key is refused: {refusal}", "flight" in str(refusal))
    else:
        stage.narrator.check("a misspelt key is refused", holds=False)


def _create_people() -> User:
    """Teams and those in them; `ines` is also the administrator of this instance."""
    ines = User.objects.create_superuser(
        ACTOR, "ines@example.com", PASSWORD, first_name="Ines", timezone="America/New_York"
    )
    omar = User.objects.create_user(
        "omar", "omar@example.com", PASSWORD, first_name="Omar", timezone="America/New_York"
    )
    for name in ("flight-ops", "weather-desk", "reference-data"):
        team = Team.objects.create(name=name)
        Membership.objects.create(user=ines, team=team, role=Role.ADMIN)
        Membership.objects.create(user=omar, team=team, role=Role.ON_CALL)
    return ines


def _issue_token(data_center: str, user: User, now: datetime) -> str:
    """The key of an ETL scheduler that reads in `data_center`."""
    team = Team.objects.get(name="flight-ops")
    scopes = ["gate:read", "catalog:read", "quality:read", "incidents:read"]
    _, text = api_tokens.issue_token(
        name=f"etl-{data_center}",
        consumer="etl",
        team=team,
        created_by=user,
        scopes=scopes,
        now=now,
        data_center=data_center,
    )
    return text
