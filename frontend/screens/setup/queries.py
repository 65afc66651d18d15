"""What an instance has of what it needs: the steps of the first hour, and who may take each."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can_in_some_team, is_operator, teams_where
from lakehub.catalog.models import Connection, DataCenter, Dataset

MAX_SHOWN = 50
_OPERATORS = "An administrator of Lakehub"


@dataclass(frozen=True)
class SetupStep:
    """One step: `n` things that are there, whether the viewer may add one, and who may where the viewer may not."""

    key: str
    title: str
    why: str
    n: int
    url_name: str
    action: str
    may: bool
    who: str

    @property
    def is_done(self) -> bool:
        return self.n > 0


def setup_steps(user: User) -> list[SetupStep]:
    """In the order in which each needs the one before."""
    operator = is_operator(user)
    return [
        SetupStep(
            "team",
            "Team",
            "Owns connections and datasets, and hears of their incidents.",
            Team.objects.count(),
            "new-team",
            "Add a team",
            operator,
            f"{_OPERATORS} adds teams.",
        ),
        SetupStep(
            "data-center",
            "Data center",
            "Where a copy of a dataset is kept. One is enough to begin.",
            DataCenter.objects.count(),
            "new-data-center",
            "Add a data center",
            operator,
            f"{_OPERATORS} adds data centers.",
        ),
        SetupStep(
            "connection",
            "Connection",
            "Where rows are read: a database or a folder of files. It is tried before it is kept.",
            Connection.objects.count(),
            "new-connection",
            "Add a connection",
            can_in_some_team(user, "connect"),
            "An admin of a team adds its connections.",
        ),
        SetupStep(
            "people",
            "People and roles",
            "Who is paged and who may act. Everybody who is signed in may look.",
            max(0, User.objects.filter(is_active=True).count() - 1),
            "new-person",
            "Add a person",
            operator,
            f"{_OPERATORS} adds people; an admin of a team gives them a role in it.",
        ),
        SetupStep(
            "dataset",
            "First dataset",
            "Name a table; Lakehub proposes its keys and makes its tests.",
            Dataset.objects.filter(offboarded_at=None).count(),
            "onboarding",
            "Onboard a dataset",
            can_in_some_team(user, "onboard"),
            "An owner or admin of a team onboards its datasets.",
        ),
    ]


def next_step(steps: list[SetupStep]) -> SetupStep | None:
    """The first that is missing; people can also come later, so the first dataset does not wait for them."""
    return next((step for step in steps if not step.is_done and step.key != "people"), None)


def teams_with_sizes() -> list[Team]:
    """The first MAX_SHOWN, each with `people`."""
    return list(Team.objects.annotate(people=Count("memberships"))[:MAX_SHOWN])


def visible_connections(user: User) -> list[Connection]:
    """Of the teams in which `user` may onboard: names of sources are not everybody's."""
    teams = Team.objects.filter(teams_where(user, "onboard"))
    return list(Connection.objects.filter(team__in=teams).select_related("team").order_by("name")[:MAX_SHOWN])
