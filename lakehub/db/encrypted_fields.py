"""Text columns that are encrypted at rest with the instance's own key, and what they are found by."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """Reads and writes plain text; the database holds ciphertext. It cannot be searched."""

    def get_prep_value(self, value: Any) -> Any:
        return encrypt_text(value) if value else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if not value:
            return value
        try:
            return _cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            raise ImproperlyConfigured(
                f"{self.model.__name__}.{self.name} was encrypted with another key: set LAKEHUB_ENCRYPTION_KEY to the one that this database was used with."
            ) from None


class KeyedDigestField(models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """A digest, under the instance's key, of the encrypted field `of`: rows with the same text are found by it."""

    def __init__(self, of: str, **options: Any) -> None:
        self.of = of
        super().__init__(**{"max_length": 64, "editable": False, "default": "", **options})

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        value = keyed_digest(getattr(model_instance, self.of))
        setattr(model_instance, self.attname, value)
        return value

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, [self.of, *args], options


def keyed_digest(text: str) -> str:
    return hmac.new(_key(), text.encode(), hashlib.sha256).hexdigest()


def encrypt_text(text: str) -> str:
    """As an EncryptedTextField stores it, for migrations."""
    return _cipher().encrypt(text.encode()).decode() if text else text


def decrypt_text(encrypted: str) -> str:
    """What `encrypt_text` was given."""
    return _cipher().decrypt(encrypted.encode()).decode() if encrypted else encrypted


def _cipher() -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(_key()).digest()))


def _key() -> bytes:
    key: str = settings.LAKEHUB_ENCRYPTION_KEY
    if not key:
        raise ImproperlyConfigured(
            f"There is no encryption key: {settings.LAKEHUB_HOME} was not prepared when the settings were read. "
            "Set LAKEHUB_ENCRYPTION_KEY, or call `lakehub.instance.prepare_instance()` before `django.setup()`."
        )
    return key.encode()
