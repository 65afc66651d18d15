"""Who may do what: people in teams with a role, programs with a token, and the audit of what they changed."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models

SLUG = RegexValidator(
    r"^[a-z][a-z0-9_-]{0,62}$", "Use small letters, digits, - and _; start with a letter; 63 at most."
)


class Role(models.TextChoices):
    """What a member may do with the datasets of the team; each holds what the one before may."""

    VIEWER = "viewer"
    OWNER = "owner"
    ON_CALL = "on_call", "on call"
    ADMIN = "admin"


class User(AbstractUser):
    """A person. Times are shown in `timezone`."""

    timezone = models.CharField(max_length=64, default="UTC")

    token_team: Team | None = None
    """Set while a token of this team acts for the person: what they may do in other teams does not count."""


class Team(models.Model):
    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    email = models.EmailField(blank=True)
    webhook_url = models.URLField(blank=True, max_length=500)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "team"], name="one_role_a_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class Consumer(models.Model):
    """A name under which programs ask the gate: the team's that had the first token of it made; `lakehub.accounts.tokens.consumers` has the rule."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="consumers")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Token(models.Model):
    """A program's key. Only its hash is kept; `consumer` and `data_center` decide what the gate answers it."""

    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=100)
    consumer = models.CharField(max_length=63, validators=[SLUG])
    scopes = models.JSONField(default=list)
    data_center = models.CharField(max_length=63, blank=True)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tokens")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


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


class AuditEntry(models.Model):
    """Who changed what, when; appended with the change, never edited."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=63)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["subject", "-at"], name="audit_of_subject"),
            models.Index(fields=["actor", "-at"], name="audit_by_actor"),
            models.Index(fields=["-at"], name="audit_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.action} {self.subject}"
