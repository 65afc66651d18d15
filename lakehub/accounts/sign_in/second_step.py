"""The second step of signing in: a code of an authenticator (TOTP, RFC 6238), or one of ten recovery codes, each once.

Authenticators go by the wall's time, also where the instance's clock is shifted.
"""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
from datetime import datetime
from hashlib import sha256

import pyotp
from django.conf import settings
from django.db import transaction

from lakehub import clock
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Membership, RecoveryCode, Role, SecondStep, User
from lakehub.accounts.sign_in import throttle
from lakehub.accounts.sign_in.sessions import end_sessions
from lakehub.kernel.errors import Conflict, Refused

CODE_SECONDS = 30
_DRIFT = (-1, 0, 1)
"""Clocks may differ by a code in each direction."""
RECOVERY_CODES = 10
_RECOVERY_BYTES = 15
"""120 random bits: with 112 or more a plain hash is enough."""
_ISSUER = "Lakehub"

logger = logging.getLogger(__name__)


def is_enrolled(person: User) -> bool:
    return SecondStep.objects.filter(user=person).exclude(confirmed_at=None).exists()


def is_required(person: User) -> bool:
    """By LAKEHUB_REQUIRE_TOTP: of nobody, of superusers and administrators of a team, or of everybody."""
    required_of = settings.LAKEHUB_REQUIRE_TOTP
    if required_of != "admins":
        return bool(required_of == "everybody")
    return person.is_superuser or Membership.objects.filter(user=person, role=Role.ADMIN).exists()


def begin_enrolment(person: User) -> None:
    """A new secret, which counts once a code of it was right. Raises Conflict where the person has one that counts."""
    with transaction.atomic():
        step, _ = SecondStep.objects.select_for_update().get_or_create(user=person)
        if step.confirmed_at is not None:
            raise Conflict("Your second step is already set up; remove it first. Nothing was changed.")
        step.secret, step.last_counter = pyotp.random_base32(), 0
        step.save()


def pending_uri(person: User) -> str:
    """What the authenticator reads, as text or from a picture; empty where no enrolment has begun."""
    step = SecondStep.objects.filter(user=person, confirmed_at=None).first()
    if step is None or not step.secret:
        return ""
    return pyotp.TOTP(step.secret).provisioning_uri(name=person.get_username(), issuer_name=_ISSUER)


def confirm(person: User, code: str, *, address: str, now: datetime, session_key: str | None) -> list[str]:
    """The recovery codes: show them this once. Other browsers are signed out. Raises Refused, Conflict."""
    if is_enrolled(person) or not pending_uri(person):
        raise Conflict("No second step is waiting for a code: start to set it up first. Nothing was changed.")
    _require_code(person, code, address=address, now=now, with_recovery=False)
    with transaction.atomic():
        SecondStep.objects.filter(user=person).update(confirmed_at=now)
        codes = _new_recovery_codes(person)
        _record(person, "set up second step", now=now)
        end_sessions(person, actor=person.get_username(), now=now, keep=session_key)
    return codes


def verify(person: User, code: str, *, address: str, now: datetime) -> None:
    """The code opens the door, this once. Raises Refused where it is wrong or was used, SignInLocked where too many were."""
    _require_code(person, code, address=address, now=now, with_recovery=True)


def renew_recovery_codes(person: User, code: str, *, address: str, now: datetime) -> list[str]:
    """Ten new ones; the old ones open nothing any more. Raises Refused, SignInLocked."""
    _require_code(person, code, address=address, now=now, with_recovery=True)
    with transaction.atomic():
        codes = _new_recovery_codes(person)
        _record(person, "renew recovery codes", now=now)
    return codes


def remove(person: User, code: str, *, address: str, now: datetime) -> None:
    """By the person, with a code. Raises Refused, SignInLocked."""
    _require_code(person, code, address=address, now=now, with_recovery=True)
    reset(person, actor=person.get_username(), now=now)


def reset(person: User, *, actor: str, now: datetime) -> None:
    """For who lost the authenticator and the recovery codes: the password alone opens again, until a new one is set up."""
    with transaction.atomic():
        RecoveryCode.objects.filter(user=person).delete()
        if SecondStep.objects.filter(user=person).delete()[0]:
            audit_log.record(actor, "remove second step", f"person:{person.get_username()}", now=now)


def recovery_codes_left(person: User) -> int:
    return RecoveryCode.objects.filter(user=person).count()


def _require_code(person: User, code: str, *, address: str, now: datetime, with_recovery: bool) -> None:
    """Counted before it is looked at, as passwords are. Raises Refused, SignInLocked."""
    attempt = throttle.CodeAttempt(person.get_username(), address)
    throttle.register_attempt(attempt, now=now)
    digits = "".join(code.split())
    if not (_take_code(person, digits, now) or (with_recovery and _take_recovery_code(person, digits, now))):
        logger.warning("A code was wrong, of %s", person.get_username())
        raise Refused.for_fields({"code": "This code is wrong, or was used already. Wait for the next one."})
    throttle.clear_failures(attempt)


def _take_code(person: User, digits: str, now: datetime) -> bool:
    """Of two requests with one code, one is let in."""
    step = SecondStep.objects.filter(user=person).first()
    if step is None or not step.secret or not digits.isascii() or not digits.isdigit():
        return False
    authenticator, current = pyotp.HOTP(step.secret), int((now - clock.ahead()).timestamp()) // CODE_SECONDS
    for counter in (current + drift for drift in _DRIFT):
        if hmac.compare_digest(authenticator.at(counter), digits):
            newer = SecondStep.objects.filter(pk=step.pk, last_counter__lt=counter)
            return bool(newer.update(last_counter=counter))
    return False


def _take_recovery_code(person: User, text: str, now: datetime) -> bool:
    digest = _recovery_digest(text)
    with transaction.atomic():
        was_there = bool(RecoveryCode.objects.filter(user=person, digest=digest).delete()[0])
        if was_there:
            _record(person, "use recovery code", now=now)
    return was_there


def _new_recovery_codes(person: User) -> list[str]:
    RecoveryCode.objects.filter(user=person).delete()
    codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(user=person, digest=_recovery_digest(code)) for code in codes)
    return ["-".join(code[begin : begin + 4] for begin in range(0, len(code), 4)) for code in codes]


def _recovery_digest(text: str) -> str:
    return sha256(text.lower().replace("-", "").encode()).hexdigest()


def _record(person: User, action: str, *, now: datetime) -> None:
    name = person.get_username()
    audit_log.record(name, action, f"person:{name}", now=now)
