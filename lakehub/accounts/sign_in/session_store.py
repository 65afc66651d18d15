"""Where sessions are kept: a row each, found by a digest of its key, so that nobody who reads the database can use one.

A session ends after LAKEHUB_SESSION_IDLE minutes without a request, and after LAKEHUB_SESSION_HOURS in any case. Its times are the
wall's, also where the instance's clock is shifted. Django's middleware makes one only where something is put into it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from lakehub.accounts.models import BrowserSession

ORIGIN_KEYS = ("address", "browser")
"""What is put into a session about where it was begun, and is a column of its row."""
SEEN_PRECISION = timedelta(minutes=1)


class SessionStore(SessionBase):
    """Named by settings.SESSION_ENGINE."""

    def load(self) -> dict[str, Any]:
        now = timezone.now()
        row = BrowserSession.objects.filter(digest=key_digest(self.session_key or "")).exclude(ended(now=now)).first()
        if row is None:
            self._session_key = None
            return {}
        if now - row.last_seen_at >= SEEN_PRECISION:
            BrowserSession.objects.filter(pk=row.pk, last_seen_at__lt=now).update(last_seen_at=now)
        return self.decode(row.data)

    def exists(self, session_key: str) -> bool:
        return BrowserSession.objects.filter(digest=key_digest(session_key)).exists()

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]  # not in the stubs
            try:
                self.save(must_create=True)
            except CreateError:  # somebody has that key
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        if self.session_key is None:
            self.create()
            return
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        origin = {name: str(data.get(name, ""))[: _length_of(name)] for name in ORIGIN_KEYS}
        fields = {"data": self.encode(data), "user_id": data.get(SESSION_KEY), **origin}
        digest = key_digest(self.session_key)
        if not must_create:
            if not BrowserSession.objects.filter(digest=digest).update(**fields):
                raise UpdateError
            return
        now = timezone.now()
        try:
            with transaction.atomic():
                BrowserSession.objects.create(digest=digest, begun_at=now, last_seen_at=now, **fields)
        except IntegrityError:
            raise CreateError from None

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            BrowserSession.objects.filter(digest=key_digest(key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        BrowserSession.objects.filter(ended(now=timezone.now())).delete()


def ended(*, now: datetime) -> Q:
    """The sessions that open nothing any more."""
    idle = now - timedelta(minutes=settings.LAKEHUB_SESSION_IDLE)
    return Q(last_seen_at__lte=idle) | Q(begun_at__lte=now - timedelta(hours=settings.LAKEHUB_SESSION_HOURS))


def key_digest(session_key: str) -> str:
    """The key is random, so no slow hash is needed."""
    return sha256(session_key.encode()).hexdigest()


def _length_of(column: str) -> int:
    return getattr(BrowserSession._meta.get_field(column), "max_length", 0)
