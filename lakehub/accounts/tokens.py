"""Making and checking programs' tokens. Only the SHA-256 of a token is stored: it is random, so no slow hash is needed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Q

from lakehub.accounts.models import Team, Token, User
from lakehub.kernel.suggest import did_you_mean

SCOPES = (
    "gate:read",
    "catalog:read",
    "catalog:write",
    "ingestion:read",
    "ingestion:run",
    "quality:read",
    "quality:run",
    "incidents:read",
    "incidents:write",
)
_LAST_USED_STEP = timedelta(minutes=1)


class UnknownScope(ValueError):
    """A scope that no part of the API asks for."""


def issue(
    *,
    name: str,
    consumer: str,
    team: Team,
    created_by: User,
    scopes: Iterable[str],
    now: datetime,
    data_center: str = "",
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """A new token and its text, which is shown this once."""
    wanted = sorted(set(scopes))
    for scope in wanted:
        if scope not in SCOPES:
            raise UnknownScope(f"There is no scope `{scope}`.{did_you_mean(scope, SCOPES)}")
    prefix, secret = f"lh_{secrets.token_hex(4)}", secrets.token_urlsafe(32)
    token = Token.objects.create(
        prefix=prefix,
        digest=_digest(secret),
        name=name,
        consumer=consumer,
        team=team,
        created_by=created_by,
        scopes=wanted,
        data_center=data_center,
        created_at=now,
        expires_at=expires_at,
    )
    return token, f"{prefix}.{secret}"


def find(text: str, *, now: datetime) -> Token | None:
    """The live token with this text; None where it is unknown, expired or revoked. Notes its use, to the minute."""
    prefix, _, secret = text.partition(".")
    token = Token.objects.select_related("team", "created_by").filter(prefix=prefix).first()
    if token is None or not hmac.compare_digest(token.digest, _digest(secret)):
        return None
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if not token.created_by.is_active:
        return None
    _note_use(token, now)
    return token


def _note_use(token: Token, now: datetime) -> None:
    if token.last_used_at is None or now - token.last_used_at >= _LAST_USED_STEP:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now)
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
