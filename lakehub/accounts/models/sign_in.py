"""How people sign in, and where they are signed in."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models.people import User
from lakehub.db.encrypted_fields import EncryptedTextField


class SignInTries(models.Model):
    """Failed attempts to sign in, counted by a digest of name and address; `lakehub.accounts.sign_in.throttle` has the rule."""

    key = models.CharField(max_length=64, unique=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()
    locked_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["last_at"], name="sign_in_tries_by_age"),
            models.Index(fields=["locked_until"], name="sign_in_tries_by_lock"),
        ]
        verbose_name_plural = "sign in tries"

    def __str__(self) -> str:
        return f"{self.failures} since {self.last_at:%Y-%m-%d %H:%M}"


class BrowserSession(models.Model):
    """A browser that somebody is signed in with. `digest` is of its key, which only the browser has."""

    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="browser_sessions")
    data = models.TextField()
    begun_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    """To the minute."""
    address = models.CharField(max_length=64, blank=True)
    browser = models.CharField(max_length=60, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["begun_at"], name="sessions_by_begin"),
            models.Index(fields=["last_seen_at"], name="sessions_by_last_seen"),
        ]

    def __str__(self) -> str:
        return f"{self.browser or 'a browser'} at {self.address or 'an unknown address'}"


class PasswordResetRequest(models.Model):
    """Somebody asked for a link by mail. A worker looks whether there is a person with that address, so that the answer tells nobody."""

    email = EncryptedTextField()
    at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"asked at {self.at:%Y-%m-%d %H:%M}"


class SecondStep(models.Model):
    """The secret that a person's authenticator makes codes of (TOTP, RFC 6238)."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="second_step")
    secret = EncryptedTextField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    """When a first code was right; until then it is asked for nowhere."""
    last_counter = models.BigIntegerField(default=0)
    """Of the last code that was taken: none of that time or before is taken again."""

    def __str__(self) -> str:
        return f"second step of {self.user}"


class RecoveryCode(models.Model):
    """Lets a person in once, without the authenticator. The code is random, so its SHA-256 is enough."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code_once")]

    def __str__(self) -> str:
        return f"recovery code of {self.user}"


class ExternalIdentity(models.Model):
    """Who a person is at the provider of single sign-on: issuer and subject, which never change; names and addresses may."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="external_identities")
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    linked_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_an_identity")]
        verbose_name_plural = "external identities"

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
