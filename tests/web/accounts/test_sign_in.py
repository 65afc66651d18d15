"""Guessing passwords is made slow, on the pages and on the console."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AbstractBaseUser
from django.test import Client, RequestFactory
from pytest_django import Settings

from lakehub import clock
from lakehub.accounts.models import SignInTries
from lakehub.accounts.sign_in import known_browsers, throttle
from lakehub.accounts.sign_in.throttle import FREE_FAILURES, SignInAttempt, SignInLocked
from tests import factories
from tests.factories import MINUTE, NOW
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db
INES = SignInAttempt("ines", "192.0.2.1")


@pytest.fixture
def ines() -> AbstractBaseUser:
    return factories.user("ines", is_staff=True)


def fail(attempt: SignInAttempt = INES, times: int = 5, *, at: timedelta = timedelta()) -> None:
    for _ in range(times):
        throttle.register_attempt(attempt, now=NOW + at)


def locked_for(attempt: SignInAttempt = INES, *, at: timedelta = timedelta()) -> timedelta:
    with pytest.raises(SignInLocked) as refused:
        throttle.register_attempt(attempt, now=NOW + at)
    return refused.value.until - NOW - at


def post(client: Client, password: str, page: str = "/sign-in", **more: str) -> tuple[int, str]:
    answer = client.post(page, {"username": "ines", "password": password}, headers=more)
    return answer.status_code, answer.content.decode()


def test_after_five_failures_even_the_right_password_waits(client: Client, ines: AbstractBaseUser) -> None:
    for _ in range(5):
        assert post(client, "wrong")[0] == 200
    status, page = post(client, factories.PASSWORD)
    assert status == 429
    assert "Too many attempts have failed. Try again in" in page
    assert "_auth_user_id" not in client.session
    assert int(client.post("/sign-in", {"username": "ines", "password": "x"}).headers["Retry-After"]) in range(1, 61)


def test_the_console_has_no_door_of_its_own(client: Client, ines: AbstractBaseUser) -> None:
    """So its passwords count with the others, and its second step is the same."""
    answer = client.post(
        "/console/login/?next=/console/accounts/", {"username": "ines", "password": factories.PASSWORD}
    )
    assert answer.headers["Location"] == "/sign-in?next=%2Fconsole%2Faccounts%2F"
    assert "_auth_user_id" not in client.session
    answer = client.post("/sign-in", {"username": "ines", "password": factories.PASSWORD, "next": "/console/"})
    assert answer.headers["Location"] == "/console/"
    assert client.get("/console/").status_code == 200
    assert client.get("/console/password_change/").headers["Location"] == "/account/password"


def test_the_console_says_to_others_that_it_is_not_theirs(client: Client) -> None:
    """And sends them not round in circles."""
    client.force_login(factories.user("omar"))
    assert client.get("/console/", follow=True).status_code == 403


@pytest.mark.parametrize("next_url", ["nan", "account", "admin:index", "a.b", "javascript:alert(1)", "//evil.example"])
def test_a_word_is_no_place_to_go_on_at(client: Client, ines: AbstractBaseUser, next_url: str) -> None:
    answer = client.post("/sign-in", {"username": "ines", "password": factories.PASSWORD, "next": next_url})
    assert (answer.status_code, "evil" in answer.headers["Location"]) == (302, False)
    assert client.post("/datasets/none/follow", {"next": next_url}).status_code == 404
    flights = factories.dataset("flights")
    answer = client.post(f"/datasets/{flights.name}/follow", {"next": next_url})
    assert answer.headers["Location"] == "/datasets/flights"


def test_the_right_password_in_time_is_no_failure(client: Client, ines: AbstractBaseUser) -> None:
    for _ in range(4):
        post(client, "wrong")
    assert post(client, factories.PASSWORD)[0] == 302
    assert list(SignInTries.objects.values_list("failures", flat=True)) == [4, 4]


def test_the_wait_doubles_and_ends() -> None:
    fail()
    assert locked_for() == MINUTE
    fail(times=1, at=MINUTE)
    assert locked_for(at=MINUTE) == 2 * MINUTE
    fail(times=1, at=4 * MINUTE)


def test_after_hours_without_an_attempt_all_is_forgotten() -> None:
    fail()
    fail(at=4 * throttle.EXPIRES_AFTER, times=4)
    assert SignInTries.objects.count() == 3


def test_what_is_forgotten_is_found_by_an_index() -> None:
    free, locked = plans_of(lambda: [list(over) for over in throttle.expired_counters(now=NOW)])
    assert "sign_in_tries_by" in free
    assert "sign_in_tries_by_lock" in locked


def test_others_and_other_places_do_not_wait() -> None:
    fail()
    throttle.register_attempt(SignInAttempt("ines", "192.0.2.2"), now=NOW)
    throttle.register_attempt(SignInAttempt("omar", INES.address), now=NOW)


def test_one_address_cannot_try_many_names() -> None:
    for number in range(FREE_FAILURES["address"]):
        fail(SignInAttempt(f"user{number}", INES.address), times=1)
    assert locked_for(SignInAttempt("another", INES.address)) == MINUTE


def test_a_network_of_ipv6_is_one_address() -> None:
    """Whoever has one has all of its addresses to choose from."""
    kinds = (SignInAttempt, throttle.CodeAttempt, throttle.MailAttempt)
    for number in range(FREE_FAILURES["address"]):
        throttle.register_attempt(kinds[number % 3](f"user{number}", f"2001:db8:0:7::{number:x}"), now=NOW)
    for attempt in (throttle.ProviderAttempt("2001:db8:0:7:ffff::1"), SignInAttempt("another", "2001:db8:0:7::ffff")):
        with pytest.raises(SignInLocked):
            throttle.register_attempt(attempt, now=NOW)
    throttle.register_attempt(SignInAttempt("another", "2001:db8:0:8::1"), now=NOW)


def test_one_name_cannot_be_tried_from_many_addresses() -> None:
    for number in range(FREE_FAILURES["name"]):
        fail(SignInAttempt("ines", f"192.0.2.{number}"), times=1)
    assert locked_for(SignInAttempt("INES ", "198.51.100.7")) == MINUTE


def test_strangers_who_fail_under_a_name_do_not_keep_its_owner_out(client: Client, ines: AbstractBaseUser) -> None:
    """Fifty failures from fifty addresses lock the name for strangers; a browser that ines signed in with goes on."""
    assert post(client, factories.PASSWORD)[0] == 302
    client.post("/sign-out")
    for number in range(FREE_FAILURES["name"]):
        throttle.register_attempt(SignInAttempt("ines", f"192.0.2.{number}"), now=clock.now())
    assert post(Client(), factories.PASSWORD)[0] == 429
    assert post(client, "wrong")[0] == 200
    assert post(client, factories.PASSWORD)[0] == 302


def test_a_known_browser_guesses_no_more_than_others(client: Client, ines: AbstractBaseUser) -> None:
    assert post(client, factories.PASSWORD)[0] == 302
    client.post("/sign-out")
    assert [post(client, "wrong")[0] for _ in range(FREE_FAILURES["name and browser"] + 1)] == [200] * 4 + [200, 429]


def test_the_cookie_of_a_browser_is_of_one_name_and_cannot_be_made(client: Client, ines: AbstractBaseUser) -> None:
    factories.user("omar")
    assert post(client, factories.PASSWORD)[0] == 302
    cookie = client.cookies["known"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    request = RequestFactory().get("/")
    for value, name, is_known in (
        (cookie.value, "INES ", True),
        (cookie.value, "omar", False),
        ("made:up:x", "ines", False),
    ):
        request.COOKIES = {"known": value}
        assert bool(known_browsers.known_browser(request, name)) is is_known


@pytest.mark.parametrize(("proxies", "counted"), [(0, 1), (1, 2)])
def test_the_header_of_a_proxy_is_believed_where_there_is_one(
    client: Client, settings: Settings, proxies: int, counted: int
) -> None:
    settings.LAKEHUB_PROXIES = proxies
    for number in range(2):
        post(client, "wrong", **{"X-Forwarded-For": f"203.0.113.9, 192.0.2.{number}"})
    # One counter for the name, and two for each address that was seen.
    assert SignInTries.objects.count() == 1 + 2 * counted


def test_what_was_typed_as_a_name_is_not_kept(client: Client) -> None:
    client.post("/sign-in", {"username": "my secret password", "password": "x"})
    assert "secret" not in str(list(SignInTries.objects.values()))
