"""Programs' tokens: made, listed, revoked, and recognized. Only the SHA-256 of a secret is stored: it is random, so no slow hash is needed."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team, Token, User
from lakehub.accounts.permissions import teams_where
from lakehub.accounts.ports import data_centers
from lakehub.accounts.tokens import consumers
from lakehub.db.prepared_query import Parameter, PreparedQuery
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

SCOPES = (
    "gate:read",
    "gate:write",
    "catalog:read",
    "catalog:write",
    "lineage:write",
    "ingestion:read",
    "ingestion:run",
    "schemas:read",
    "schemas:write",
    "quality:read",
    "quality:run",
    "incidents:read",
    "incidents:write",
    "tokens:read",
    "tokens:write",
    "audit:read",
    "metrics:read",
)
MAX_NAME_LENGTH = 100
_TOKEN_FORMAT = re.compile(r"lh_[0-9a-f]{8}\.[A-Za-z0-9_-]{43}")
_LAST_USED_PRECISION = timedelta(minutes=1)
_BY_PREFIX = PreparedQuery(
    lambda: Token.objects.select_related("team", "created_by").filter(prefix=Parameter("prefix"))
)
"""With every call of the API."""


def max_lifetime() -> timedelta:
    """No token lives longer than this: LAKEHUB_TOKEN_DAYS."""
    return timedelta(days=settings.LAKEHUB_TOKEN_DAYS)


def issue_token(
    *,
    name: str,
    consumer: str,
    team: Team,
    created_by: User,
    scopes: Iterable[str],
    now: datetime,
    data_center: str = "",
    expires_at: datetime | None = None,
    actor: str = "",
) -> tuple[Token, str]:
    """A new token and its text, which is shown this once. It ends at `expires_at`, or after the longest time. Raises Refused."""
    scope_names, ends = sorted(set(scopes)), expires_at or now + max_lifetime()
    problems = _validation_errors(name, consumer, team, scope_names, data_center, ends, now)
    if problems:
        raise Refused.for_fields(problems)
    prefix, secret = f"lh_{secrets.token_hex(4)}", secrets.token_urlsafe(32)
    with transaction.atomic():
        consumers.assign_to_team(consumer, team, actor=actor or created_by.get_username(), now=now)
        token = Token.objects.create(
            prefix=prefix,
            digest=_digest(secret),
            name=name,
            consumer=consumer,
            team=team,
            created_by=created_by,
            scopes=scope_names,
            data_center=data_center,
            created_at=now,
            expires_at=ends,
        )
        audit_log.record(
            actor or created_by.get_username(),
            "issue token",
            f"token:{prefix}",
            now=now,
            name=name,
            team=team.name,
            consumer=consumer,
            scopes=scope_names,
            expires_at=ends.isoformat(),
        )
    return token, f"{prefix}.{secret}"


def require_within_maker(scopes: Iterable[str], expires_at: datetime, *, maker: Token) -> None:
    """A token makes only tokens that can no more than it, and live no longer. Raises Refused."""
    fields = {}
    if more := sorted(set(scopes) - set(maker.scopes)):
        fields["scopes"] = f"This token lacks {', '.join(f'`{scope}`' for scope in more)}: it cannot hand that on."
    if expires_at > maker.expires_at:
        fields["days"] = f"This token ends on {maker.expires_at:%Y-%m-%d %H:%M} UTC: what it makes ends no later."
    if fields:
        raise Refused.for_fields(fields)


def visible_tokens(user: User, *, now: datetime, ended: bool = False) -> QuerySet[Token]:
    """The tokens of the teams that `user` administers, newest first; with `ended`, those too that open nothing any more."""
    tokens = Token.objects.filter(team__in=Team.objects.filter(teams_where(user, "issue")))
    if not ended:
        tokens = tokens.filter(revoked_at=None, expires_at__gt=now)
    return tokens.select_related("team", "created_by").order_by("-created_at", "-pk")


def token_by_prefix(prefix: str) -> Token:
    token = Token.objects.select_related("team").filter(prefix=prefix).first()
    if token is None:
        raise NotFound(f"There is no token `{prefix}`: give the part before the dot.")
    return token


@transaction.atomic
def revoke_token(token: Token, *, actor: str, now: datetime) -> None:
    """From now on it opens nothing. Raises Conflict where somebody was faster."""
    if not Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
        raise Conflict(f"{token.prefix} is revoked already; nothing was changed.")
    audit_log.record(actor, "revoke token", f"token:{token.prefix}", now=now, name=token.name, team=token.team.name)


def authenticate(text: str, *, now: datetime) -> Token | None:
    """The live token with this text; None where it is unknown, expired or revoked. Notes its use, to the minute."""
    if not _TOKEN_FORMAT.fullmatch(text):
        return None
    prefix, _, secret = text.partition(".")
    token: Token | None = next(iter(_BY_PREFIX.objects(prefix=prefix)), None)
    if token is None or not hmac.compare_digest(token.digest, _digest(secret)):
        return None
    if token.revoked_at is not None or token.expires_at <= now or not token.created_by.is_active:
        return None
    _record_use(token, now)
    return token


def _validation_errors(
    name: str, consumer: str, team: Team, scopes: list[str], data_center: str, ends: datetime, now: datetime
) -> dict[str, str]:
    """What is wrong, by field, so that all of it is mended at once."""
    wrong = {}
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        wrong["name"] = f"A token needs a name of {MAX_NAME_LENGTH} characters at most, such as `airflow`."
    if why := consumers.refusal_reason(consumer, team):
        wrong["consumer"] = why
    for scope in scopes:
        if scope not in SCOPES:
            wrong["scopes"] = f"There is no scope `{scope}`.{did_you_mean(scope, SCOPES)}"
    if data_center and data_center not in (known_data_centers := data_centers()):
        wrong["data_center"] = (
            f"There is no data center `{data_center}`.{did_you_mean(data_center, known_data_centers)}"
        )
    if not now < ends <= now + max_lifetime():
        wrong["days"] = f"A token ends later than now, and within {max_lifetime().days} days."
    return wrong


def _record_use(token: Token, now: datetime) -> None:
    if token.last_used_at is None or now - token.last_used_at >= _LAST_USED_PRECISION:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now)
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
