"""A text column that is encrypted at rest with the instance's own key."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """Reads and writes plain text; the database holds ciphertext. It cannot be searched."""

    def get_prep_value(self, value: Any) -> Any:
        return _cipher().encrypt(value.encode()).decode() if value else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if not value:
            return value
        try:
            return _cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            raise ImproperlyConfigured(
                f"{self.model.__name__}.{self.name} was encrypted with another key: set LAKEHUB_ENCRYPTION_KEY to the one that this database was used with."
            ) from None


def _cipher() -> Fernet:
    digest = hashlib.sha256(settings.LAKEHUB_ENCRYPTION_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
