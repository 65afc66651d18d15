"""How tokens and the audit log read in JSON."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from lakehub.accounts.models import AuditEntry, BrowserSession, Membership, Role, Team, Token, User
from lakehub.accounts.tokens.api_tokens import MAX_NAME_LENGTH, SCOPES


class TokenSerializer(serializers.ModelSerializer[Token]):
    """A token without its secret, which is not kept."""

    team = serializers.CharField(source="team.name")
    created_by = serializers.CharField(source="created_by.username")
    scopes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Token
        fields: ClassVar[tuple[str, ...]] = (
            "prefix", "name", "team", "consumer", "scopes", "data_center", "created_by", "created_at", "expires_at",
            "revoked_at", "last_used_at",
        )  # fmt: skip


class TokenRequestSerializer(serializers.Serializer[Any]):
    """What it may, for whom, and for how long."""

    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    team = serializers.CharField(max_length=63)
    consumer = serializers.CharField(max_length=63, help_text="Whose policy the gate goes by.")
    scopes = serializers.ListField(child=serializers.CharField(max_length=40), min_length=1, max_length=len(SCOPES))
    days = serializers.IntegerField(min_value=1, max_value=36_500, help_text="It ends after so many.")
    data_center = serializers.CharField(
        max_length=63, default="", allow_blank=True, help_text="What the gate answers for where none is named."
    )


class IssuedTokenSerializer(TokenSerializer):
    """With its text, this once."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields: ClassVar[tuple[str, ...]] = ("token", *TokenSerializer.Meta.fields)


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    detail = serializers.DictField(child=serializers.JSONField(allow_null=True))

    class Meta:
        model = AuditEntry
        fields: ClassVar[tuple[str, ...]] = ("at", "actor", "action", "subject", "detail")


class SessionSerializer(serializers.ModelSerializer[BrowserSession]):
    """A browser that somebody is signed in with."""

    number = serializers.IntegerField(source="pk")

    class Meta:
        model = BrowserSession
        fields: ClassVar[tuple[str, ...]] = ("number", "browser", "address", "begun_at", "last_seen_at")


class EndedSessionsSerializer(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="So many sessions.")


class TeamSerializer(serializers.ModelSerializer[Team]):
    class Meta:
        model = Team
        fields: ClassVar[tuple[str, ...]] = ("name", "email")
        extra_kwargs: ClassVar[dict[str, dict[str, Any]]] = {
            "name": {"validators": []}  # the use case says what is wrong
        }


class MemberSerializer(serializers.Serializer[Membership]):
    username = serializers.CharField(source="user.username")
    full_name = serializers.CharField(source="user.get_full_name")
    role = serializers.ChoiceField(Role.choices)


class MemberRoleSerializer(serializers.Serializer[Any]):
    role = serializers.CharField(max_length=16, help_text="viewer, owner, on_call or admin")


class PersonSerializer(serializers.Serializer[User]):
    username = serializers.CharField(max_length=150)
    email = serializers.CharField(max_length=254, default="", allow_blank=True)
    full_name = serializers.CharField(max_length=200, default="", allow_blank=True)


class NewPersonSerializer(PersonSerializer):
    """With the first password, this once."""

    password = serializers.CharField()
