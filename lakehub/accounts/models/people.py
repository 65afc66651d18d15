"""People, the teams that they are in, and their role there."""

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

    first_password_until = models.DateTimeField(null=True, editable=False)
    """The password was made for the person, and opens until then only; None: it is one of their own."""

    token_team: Team | None = None
    """Set while a token of this team acts for the person: what they may do in other teams does not count."""

    def set_password(self, raw_password: str | None) -> None:
        """One of the person's own, wherever it is set; whoever makes one for somebody says until when it counts."""
        super().set_password(raw_password)
        self.first_password_until = None


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
    by_groups = models.BooleanField(default=False, editable=False)
    """The provider of single sign-on says so, and may take it back."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "team"], name="one_role_a_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"
