"""Guessing passwords is made slow: who fails too often waits, longer each time. Kept in the database, so all web processes agree.

Attempts are counted before the password is looked at, so that many at once do not slip through, and taken back where it was right.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import ClassVar, Protocol

from django.db import transaction
from django.db.models import F, QuerySet

from lakehub.accounts.models import SignInTries
from lakehub.kernel.addresses import network_of
from lakehub.kernel.backoff import Backoff

FREE_FAILURES = {"name and address": 5, "name and browser": 5, "address": 20, "name": 50, "code": 5, "mail": 3}
"""So many failures cost nothing: of one name from one address, or with a browser that it has signed in with before; of all
names from one address; of one name from anywhere; of one name's codes; and so many mails to one address. Of IPv6 a network of 64 bits is one address."""
_FORGIVEN = ("name and address", "name and browser", "code")
"""What a success takes back as a whole."""
LOCK_BACKOFF = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=1), jitter_share=0)
EXPIRES_AFTER = timedelta(hours=2)
"""Since the last attempt, or since the end of the wait."""

logger = logging.getLogger(__name__)


class SignInLocked(Exception):
    """Too many attempts have failed; `until` says when the next one is looked at."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"Locked until {until:%H:%M:%S} UTC")
        self.until = until


class Attempt(Protocol):
    """What is counted, by the kinds of FREE_FAILURES. `what` is for the log."""

    what: ClassVar[str]

    @property
    def keys(self) -> dict[str, str]:
        """From the digest that it is counted by to its kind."""
        ...


@dataclass(frozen=True)
class SignInAttempt:
    """Who tries to sign in, from where; `browser` names one that this name has signed in with before (lakehub.accounts.sign_in.known_browsers)."""

    what: ClassVar = "a password"
    name: str
    address: str
    browser: str = ""

    @property
    def keys(self) -> dict[str, str]:
        """By what it is counted. People type passwords into the wrong field: a name is kept as a digest.

        With a known browser the failures of others under that name do not count, else whoever fails on purpose from many
        addresses would keep the person out.
        """
        name = self.name.strip().lower()
        network = network_of(self.address)
        parts: dict[str, tuple[str, ...]] = {"address": (network,)}
        if self.browser:
            parts["name and browser"] = (name, self.browser)
        else:
            parts |= {"name and address": (name, network), "name": (name,)}
        return _digests(parts)


@dataclass(frozen=True)
class CodeAttempt:
    """A code of the second step. Who tries has the password, so nothing is told apart by address or browser."""

    what: ClassVar = "a code"
    name: str
    address: str

    @property
    def keys(self) -> dict[str, str]:
        return _digests({"code": (self.name.strip().lower(),), "address": (network_of(self.address),)})


@dataclass(frozen=True)
class MailAttempt:
    """A link that is to be mailed, whether there is somebody with that address or not."""

    what: ClassVar = "a link by mail"
    email: str
    address: str

    @property
    def keys(self) -> dict[str, str]:
        return _digests({"mail": (self.email.strip().lower(),), "address": (network_of(self.address),)})


@dataclass(frozen=True)
class ProviderAttempt:
    """Somebody comes back from the provider of single sign-on; nobody's name is known yet."""

    what: ClassVar = "single sign-on"
    address: str

    @property
    def keys(self) -> dict[str, str]:
        return _digests({"address": (network_of(self.address),)})


def register_attempt(attempt: Attempt, *, now: datetime) -> None:
    """Counts the attempt. Raises SignInLocked where it must wait: then the password is not looked at, and nothing is counted."""
    for over in expired_counters(now=now):
        over.delete()
    with transaction.atomic():
        counters = _counters_for_update(attempt.keys, now)
        locked = [
            counter.locked_until
            for counter in counters
            if counter.locked_until is not None and counter.locked_until > now
        ]
        if locked:
            logger.warning(
                "Too many attempts at %s have failed: nothing is looked at until %s", attempt.what, max(locked)
            )
            raise SignInLocked(max(locked))
        for counter in counters:
            counter.failures, counter.last_at = counter.failures + 1, now
            beyond = counter.failures - FREE_FAILURES[attempt.keys[counter.key]]
            counter.locked_until = now + LOCK_BACKOFF.delay(beyond, 0) if beyond >= 0 else None
            counter.save(update_fields=["failures", "last_at", "locked_until"])


def expired_counters(*, now: datetime) -> tuple[QuerySet[SignInTries], QuerySet[SignInTries]]:
    """What was not locked, and what was: an index for each, as anybody can have these looked for."""
    since = now - EXPIRES_AFTER
    return (
        SignInTries.objects.filter(last_at__lt=since, locked_until=None),
        SignInTries.objects.filter(locked_until__lt=since),
    )


def clear_failures(attempt: Attempt) -> None:
    """It was right: the attempt is taken back, and what failed of this name from this address is forgiven."""
    keys = attempt.keys
    forgiven = [key for key, key_kind in keys.items() if key_kind in _FORGIVEN]
    SignInTries.objects.filter(key__in=forgiven).delete()
    SignInTries.objects.filter(key__in=keys, failures__gt=0).update(failures=F("failures") - 1, locked_until=None)


def _digests(parts: dict[str, tuple[str, ...]]) -> dict[str, str]:
    return {sha256("\0".join((key_kind, *part)).encode()).hexdigest(): key_kind for key_kind, part in parts.items()}


def _counters_for_update(keys: Iterable[str], now: datetime) -> list[SignInTries]:
    """The counters under lock, in one order, so that two attempts at once do not wait for each other."""
    ordered = sorted(keys)
    SignInTries.objects.bulk_create([SignInTries(key=key, last_at=now) for key in ordered], ignore_conflicts=True)
    return list(SignInTries.objects.select_for_update().filter(key__in=ordered).order_by("key"))
