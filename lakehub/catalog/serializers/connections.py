"""Data centers and connections in JSON."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from lakehub.catalog.connection_limits import BOUNDS
from lakehub.catalog.metadata.roles import DatabaseRole
from lakehub.catalog.models import Connection, DataCenter


class DataCenterSerializer(serializers.ModelSerializer[DataCenter]):
    class Meta:
        model = DataCenter
        fields = ("name", "lake_uri")
        extra_kwargs: ClassVar[dict[str, dict[str, Any]]] = {
            "name": {"validators": []}
        }  # the use case says what is wrong


class RoleSerializer(serializers.Serializer[DatabaseRole]):
    """The role of a connection, as its database knew it when the URL was tried. Null where the database does not say."""

    name = serializers.CharField()
    powers = serializers.ListField(
        child=serializers.CharField(), help_text="Beyond tables: superuser, files of the server, replication, ..."
    )
    writes = serializers.ListField(child=serializers.CharField(), help_text="What it may change; the first five.")


class ConnectionSerializer(serializers.Serializer[Connection]):
    """The URL goes in and never comes out."""

    name = serializers.CharField(max_length=63)
    plugin = serializers.CharField(max_length=30)
    url = serializers.CharField(max_length=1000, write_only=True)
    team = serializers.CharField(source="team.name", max_length=63)
    rows_per_s = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="How fast all jobs and looks together may read; null: as they can."
    )
    max_connections = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="How many jobs and looks may be at work there at once; null: any."
    )
    role = RoleSerializer(read_only=True, allow_null=True)
    role_warning = serializers.CharField(
        read_only=True, help_text="What the role may do besides reading, and the remedy; empty where it only reads."
    )


class ConnectionTestSerializer(serializers.Serializer[Any]):
    """What `POST /connections/test` takes."""

    plugin = serializers.CharField(max_length=30)
    url = serializers.CharField(max_length=1000, write_only=True)
    team = serializers.CharField(max_length=63)


class ConnectionTestResultSerializer(serializers.Serializer[Any]):
    tables = serializers.IntegerField(help_text="That it lists; 1,000 stands for as many or more.")
    sentence = serializers.CharField()
    role_warning = serializers.CharField(help_text="Empty where the role of the URL only reads, or is not known.")


class ConnectionUrlSerializer(serializers.Serializer[Connection]):
    """What `PATCH /connections/{name}` takes."""

    url = serializers.CharField(max_length=1000, write_only=True)


def _limit_text(name: str) -> str:
    least, most = BOUNDS[name]
    return f"From {least:,} to {most:,}."


class ConnectionLimitsSerializer(serializers.Serializer[Connection]):
    """What `PUT /connections/{name}/limits` takes. Null: no limit."""

    rows_per_s = serializers.IntegerField(allow_null=True, help_text=_limit_text("rows_per_s"))
    max_connections = serializers.IntegerField(allow_null=True, help_text=_limit_text("max_connections"))
