"""Sessions: listed, ended one by one and all at once, by time, and with the person; kept as digests, and bounded."""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from lakehub.accounts import tasks
from lakehub.accounts.models import AuditEntry, BrowserSession, SecondStep, User
from lakehub.accounts.sign_in.browser_names import browser_name
from lakehub.accounts.sign_in.sessions import MAX_SESSIONS
from tests import factories as make

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0"


@pytest.fixture
def ines() -> User:
    return make.user("ines", is_staff=True, is_superuser=True)


def signed_in(name: str = "ines", agent: str = FIREFOX, address: str = "192.0.2.1") -> Client:
    browser = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    assert browser.post("/sign-in", {"username": name, "password": make.PASSWORD}).status_code == 302
    return browser


def is_in(browser: Client) -> bool:
    return bool(browser.get("/account").status_code == 200)


def move_back(browser: Client, **fields: timedelta) -> None:
    """The row as if so much time had passed."""
    row = row_of(browser)
    BrowserSession.objects.filter(pk=row.pk).update(**{name: timezone.now() - age for name, age in fields.items()})


def row_of(browser: Client) -> BrowserSession:
    return BrowserSession.objects.get(digest=sha256(browser.cookies["sessionid"].value.encode()).hexdigest())


def test_the_page_lists_each_with_browser_address_and_times(ines: User) -> None:
    browser = signed_in()
    signed_in(
        agent="Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", address="198.51.100.7"
    )
    page = browser.get("/account").content.decode()
    assert "2 browsers signed in" in page
    assert page.count("this one") == 1
    for words in ("Firefox on Linux", "Safari on iPhone", "192.0.2.1", "198.51.100.7", "last seen"):
        assert words in page
    listed = browser.get("/api/v1/sessions").json()
    assert [(row["browser"], row["address"]) for row in listed] == [
        ("Safari on iPhone", "198.51.100.7"),
        ("Firefox on Linux", "192.0.2.1"),
    ]


def test_one_and_all_others_are_ended(ines: User) -> None:
    here, there, elsewhere = (signed_in(address=f"192.0.2.{number}") for number in range(3))
    here.post(f"/account/sessions/{row_of(there).pk}/end")
    assert [is_in(browser) for browser in (here, there, elsewhere)] == [True, False, True]
    there = signed_in()
    here.post("/account/sessions/end-others")
    assert [is_in(browser) for browser in (here, there, elsewhere)] == [True, False, False]
    there = signed_in()
    assert here.delete("/api/v1/sessions").json() == {"ended": 1}
    assert [is_in(browser) for browser in (here, there)] == [True, False]
    assert here.delete(f"/api/v1/sessions/{row_of(here).pk}").status_code == 204
    assert not is_in(here)


def test_a_session_that_is_not_recent_ends_no_other_and_sets_up_no_second_step(ines: User) -> None:
    """Whoever has stolen it, or found the browser open, does not keep the person out."""
    here, there = signed_in(), signed_in()
    move_back(here, begun_at=timedelta(minutes=15))
    refused = {
        f"/account/sessions/{row_of(there).pk}/end": "/sign-in?again=1&next=%2Faccount",
        "/account/sessions/end-others": "/sign-in?again=1&next=%2Faccount",
        "/account/second-step/begin": "/sign-in?again=1&next=%2Faccount%2Fsecond-step",
    }
    assert {address: here.post(address).headers["Location"] for address in refused} == refused
    for address in (f"/api/v1/sessions/{row_of(there).pk}", "/api/v1/sessions", "/api/v1/people/ines/sessions"):
        answer = here.delete(address)
        assert (answer.status_code, "Sign in again" in answer.json()["error"]["message"]) == (403, True)
    assert is_in(there)
    assert "otpauth" not in here.get("/account/second-step").content.decode()


def test_a_session_that_is_not_recent_changes_in_the_console_nothing_about_getting_in(ines: User) -> None:
    """A password of one's own is set there without the old one, and a second step is removed without a code."""
    SecondStep.objects.create(user=ines, secret="s", confirmed_at=timezone.now())
    here = Client()
    here.force_login(ines)
    move_back(here, begun_at=timedelta(minutes=15))
    new = {"password1": "vapour-lintel-osprey", "password2": "vapour-lintel-osprey", "usable_password": "true"}
    people, own = "/console/accounts/user/", f"/console/accounts/user/{ines.pk}/"
    for address, posted in {
        f"{own}password/": new,
        f"{own}change/": {"username": "ines", "email": "thief@example.org"},
        f"{people}add/": new | {"username": "thief"},
        people: {"action": "remove_second_step", "_selected_action": [ines.pk]},
        "/console/auth/group/add/": {"name": "thieves"},
    }.items():
        assert here.post(address, posted).headers["Location"] == f"/sign-in?{urlencode({'again': 1, 'next': address})}"
    ines.refresh_from_db()
    assert (ines.check_password(make.PASSWORD), ines.email) == (True, "")
    assert SecondStep.objects.exists()
    assert User.objects.count() == 1


def test_signing_in_again_makes_it_recent(ines: User) -> None:
    here, there = signed_in(), signed_in()
    old = row_of(here).digest
    move_back(here, begun_at=timedelta(minutes=15))
    again = here.post("/account/sessions/end-others").headers["Location"]
    page = here.get(again).content.decode()
    assert "Sign in again" in page
    assert 'value="ines"' in page
    wrong = here.post(again, {"username": "ines", "password": "no", "next": "/account"})
    assert (wrong.status_code, is_in(there)) == (200, True)
    answer = here.post(again, {"username": "ines", "password": make.PASSWORD, "next": "/account"})
    assert answer.headers["Location"] == "/account"
    assert not BrowserSession.objects.filter(digest=old).exists()
    here.post("/account/sessions/end-others")
    assert not is_in(there)
    assert here.get("/sign-in").status_code == 302


def test_nobody_ends_the_session_of_another(ines: User) -> None:
    make.user("omar")
    mine, theirs = signed_in(), signed_in("omar")
    theirs.post(f"/account/sessions/{row_of(mine).pk}/end")
    assert theirs.delete(f"/api/v1/sessions/{row_of(mine).pk}").status_code == 404
    theirs.post("/account/sessions/end-others")
    assert theirs.delete("/api/v1/people/ines/sessions").status_code == 403
    assert is_in(mine)


def test_whoever_runs_the_instance_ends_the_sessions_of_a_person(ines: User) -> None:
    omar = make.user("omar")
    boss, first, second = signed_in(), signed_in("omar"), signed_in("omar")
    assert boss.delete("/api/v1/people/omar/sessions").json() == {"ended": 2}
    assert [is_in(browser) for browser in (boss, first, second)] == [True, False, False]
    third = signed_in("omar")
    asked: dict[str, Any] = {"action": "end_sessions", "_selected_action": [omar.pk]}
    assert boss.post("/console/accounts/user/", asked).status_code == 302
    assert not is_in(third)
    assert AuditEntry.objects.filter(actor="ines", action="end sessions", subject="person:omar").count() == 2
    assert boss.delete("/api/v1/people/omer/sessions").json()["error"]["message"].endswith("Did you mean `omar`?")


def test_deactivation_ends_all_for_good(ines: User) -> None:
    omar = make.user("omar")
    boss, theirs = signed_in(), signed_in("omar")
    form = {"username": "omar", "timezone": "UTC", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert boss.post(f"/console/accounts/user/{omar.pk}/change/", form).status_code == 302
    omar.refresh_from_db()
    assert not omar.is_active
    assert not is_in(theirs)
    User.objects.update(is_active=True)
    assert not is_in(theirs)


def test_a_password_that_is_set_in_the_console_ends_all(ines: User) -> None:
    omar = make.user("omar")
    boss, theirs = signed_in(), signed_in("omar")
    new = {
        "password1": "vapour-lintel-osprey",
        "password2": "vapour-lintel-osprey",
        "usable_password": "true",
        "set-password": "1",
    }
    assert boss.post(f"/console/accounts/user/{omar.pk}/password/", new).status_code == 302
    assert not is_in(theirs)
    assert not BrowserSession.objects.filter(user=omar).exists()
    assert is_in(boss)


@pytest.mark.parametrize(
    ("ages", "stays"),
    [
        ({"last_seen_at": timedelta(minutes=29)}, True),
        ({"last_seen_at": timedelta(minutes=30)}, False),
        ({"begun_at": timedelta(hours=11, minutes=59)}, True),
        ({"begun_at": timedelta(hours=12)}, False),
    ],
)
def test_it_ends_by_time(ines: User, settings: Settings, ages: dict[str, timedelta], stays: bool) -> None:
    settings.LAKEHUB_SESSION_IDLE, settings.LAKEHUB_SESSION_HOURS = 30, 12
    browser = signed_in()
    move_back(browser, **ages)
    assert is_in(browser) is stays


def test_to_be_seen_is_noted_to_the_minute_and_makes_it_last(ines: User, settings: Settings) -> None:
    settings.LAKEHUB_SESSION_IDLE = 30
    browser = signed_in()
    move_back(browser, last_seen_at=timedelta(seconds=50))
    before = row_of(browser).last_seen_at
    assert is_in(browser)
    assert row_of(browser).last_seen_at == before
    for _ in range(3):
        move_back(browser, last_seen_at=timedelta(minutes=29))
        assert is_in(browser)
        assert timezone.now() - row_of(browser).last_seen_at < timedelta(seconds=20)


def test_the_database_holds_no_key(ines: User) -> None:
    browser = signed_in()
    key = browser.cookies["sessionid"].value
    assert key not in str(list(BrowserSession.objects.values()))
    thief = Client()
    thief.cookies["sessionid"] = row_of(browser).digest
    assert not is_in(thief)


def test_a_person_has_so_many_at_most_and_the_oldest_goes(ines: User) -> None:
    first = signed_in()
    move_back(first, last_seen_at=timedelta(minutes=5))
    for _ in range(MAX_SESSIONS - 1):
        signed_in()
    assert is_in(first)
    move_back(first, last_seen_at=timedelta(minutes=5))
    signed_in()
    assert BrowserSession.objects.filter(user=ines).count() == MAX_SESSIONS
    assert not is_in(first)


def test_what_has_ended_is_swept(ines: User) -> None:
    idle, old, live = signed_in(), signed_in(), signed_in()
    move_back(idle, last_seen_at=timedelta(minutes=django_settings.LAKEHUB_SESSION_IDLE))
    move_back(old, begun_at=timedelta(hours=django_settings.LAKEHUB_SESSION_HOURS))
    tasks.sweep_accounts()
    assert [row.pk for row in BrowserSession.objects.all()] == [row_of(live).pk]


def test_nobody_makes_rows_without_signing_in(client: Client) -> None:
    for path in (
        "/sign-in",
        "/sign-in?next=/audit",
        "/password-forgotten",
        "/password-reset/MQ/x",
        "/",
        "/console/",
        "/health",
        "/api/v1/gate",
    ):
        client.get(path)
    client.post("/sign-in", {"username": "x", "password": "y"})
    client.post("/password-forgotten", {"email": "x@example.org"})
    client.post("/theme", {"theme": "dark"})
    assert not BrowserSession.objects.exists()


def test_the_key_is_another_one_after_signing_in(ines: User) -> None:
    browser = Client()
    browser.cookies["sessionid"] = "a" * 32
    browser.post("/sign-in", {"username": "ines", "password": make.PASSWORD})
    assert browser.cookies["sessionid"].value != "a" * 32


def test_there_is_one_way_in() -> None:
    """`login` of Django is called in one place, which names the browser and keeps the bound."""
    calls = re.compile(r"(?<![\w.])(?:auth\.|django_)?login\(")
    root = Path(django_settings.BASE_DIR)
    files = [
        file
        for name in ("lakehub", "frontend", "quality", "ingestion", "incidents")
        for file in (root / name).rglob("*.py")
    ]
    assert [str(file.relative_to(root)) for file in files if calls.search(file.read_text())] == [
        "lakehub/accounts/sign_in/sessions.py"
    ]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/131.0 Safari/537.36 Edg/131.0", "Edge on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14_6) AppleWebKit/605 Version/18.0 Safari/605", "Safari on macOS"),
        ("<script>alert(1)</script>", ""),
        ("curl/8.5", "curl"),
    ],
)
def test_browsers_have_names(agent: str, name: str) -> None:
    assert browser_name(agent) == name
