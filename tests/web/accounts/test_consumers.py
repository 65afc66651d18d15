"""The names that the gate is asked under: each is one team's, and nobody else asks under it or has a say in its policy."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied

from incidents.gate.policies import require_policy_right
from ingestion.ports import GATE_CONSUMER
from lakehub.accounts.models import AuditEntry, Consumer, Role, Token, User
from lakehub.accounts.tokens import api_tokens, consumers
from lakehub.kernel.errors import Refused
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db


def admin_of(*teams: str) -> User:
    person = make.user()
    for name in teams:
        make.member(person, make.team(name), Role.ADMIN)
    return person


def issued(team: str, consumer: str = "etl", **fields: object) -> Token:
    asked = {"name": "t", "created_by": make.user(), "scopes": ["gate:read"], "now": NOW} | fields
    return api_tokens.issue_token(team=make.team(team), consumer=consumer, **asked)[0]  # type: ignore[arg-type]


def older(team: str, consumer: str = "etl", *, hours: int = 1, **fields: object) -> Token:
    """A token as it was made before names were held."""
    token = issued(team, f"made-for-{team}")
    Token.objects.filter(pk=token.pk).update(consumer=consumer, created_at=NOW - hours * make.HOUR, **fields)
    Consumer.objects.filter(name=f"made-for-{team}").delete()
    return token


def test_the_first_team_holds_the_name_and_others_are_refused() -> None:
    issued("flight-ops")
    issued("flight-ops")
    with pytest.raises(Refused, match="Programs of team `flight-ops` ask the gate as `etl`: choose another") as refused:
        issued("weather")
    assert set(refused.value.fields) == {"consumer"}
    assert Consumer.objects.get().team.name == "flight-ops"
    held = AuditEntry.objects.get(action="hold consumer")
    assert (held.subject, held.detail) == ("consumer:etl", {"team": "flight-ops"})


def test_a_name_stays_held_when_its_tokens_have_ended() -> None:
    token = issued("flight-ops")
    api_tokens.revoke_token(token, actor="ines", now=NOW)
    with pytest.raises(Refused, match="choose another name"):
        issued("weather")
    require_policy_right(admin_of("flight-ops"), "etl", now=NOW)


def test_who_was_faster_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both looked before either had written."""
    issued("flight-ops")
    monkeypatch.setattr(consumers, "refusal_reason", lambda name, team: "")
    with pytest.raises(Refused, match="choose another name"):
        issued("weather")
    assert not Token.objects.filter(team__name="weather").exists()


def test_nobody_asks_under_the_name_of_a_person_or_of_lakehubs_own_jobs() -> None:
    assert {GATE_CONSUMER} == consumers.RESERVED_NAMES
    make.user("omar")
    for name, message in (
        (GATE_CONSUMER, "Lakehub's own jobs"),
        ("omar", "The person `omar`"),
        ("Not A Slug", "small letters"),
    ):
        with pytest.raises(Refused, match=message):
            issued("flight-ops", name)


def test_admins_of_the_team_that_holds_it_set_its_policy() -> None:
    issued("flight-ops")
    require_policy_right(admin_of("flight-ops"), "etl", now=NOW)
    for person in (admin_of("weather"), make.user()):
        with pytest.raises(PermissionDenied):
            require_policy_right(person, "etl", now=NOW)


@pytest.mark.parametrize("name", [GATE_CONSUMER, "nobody"])
def test_what_no_team_holds_is_whoevers_that_runs_the_instance(name: str) -> None:
    older("flight-ops", name, revoked_at=NOW)
    with pytest.raises(PermissionDenied, match="only who runs the instance"):
        require_policy_right(admin_of("flight-ops"), name, now=NOW)
    require_policy_right(make.user(is_superuser=True), name, now=NOW)


@pytest.mark.parametrize("ended", [{"revoked_at": NOW}, {"expires_at": NOW}])
def test_tokens_from_before_names_were_held_have_a_say_while_they_live(ended: dict[str, object]) -> None:
    issued("flight-ops")
    theirs = older("weather")
    with pytest.raises(PermissionDenied):
        require_policy_right(admin_of("flight-ops"), "etl", now=NOW)
    require_policy_right(admin_of("flight-ops", "weather"), "etl", now=NOW)
    Token.objects.filter(pk=theirs.pk).update(**ended)
    require_policy_right(admin_of("flight-ops"), "etl", now=NOW)
    with pytest.raises(PermissionDenied):
        require_policy_right(admin_of("weather"), "etl", now=NOW)


def test_a_token_of_somebody_who_has_left_has_no_say() -> None:
    issued("flight-ops")
    theirs = older("weather")
    User.objects.filter(pk=theirs.created_by_id).update(is_active=False)
    assert [team.name for team in consumers.deciding_teams("etl", now=NOW)] == ["flight-ops"]
