"""What the API shows of the index of a copy."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class IndexStateSerializer(serializers.Serializer[Any]):
    """The index of a copy. What concerns a cluster is null where its keys are in none, or nothing is known yet."""

    data_center = serializers.CharField()
    kind = serializers.CharField(help_text="That its jobs use.")
    wanted = serializers.CharField(
        source="choice.wanted", help_text="That of its feed: the same, or one that is not built yet."
    )
    change = serializers.CharField(help_text="How far that one is; empty: no other was chosen.")
    cluster = serializers.CharField(allow_null=True, source="cluster.name", default=None)
    problem = serializers.CharField(help_text="What has to be done before a job can look keys up; empty: nothing.")
    entries = serializers.IntegerField(allow_null=True)
    servers = serializers.IntegerField(allow_null=True, help_text="Region servers that have a part of it.")
    allowed_per_s = serializers.IntegerField(allow_null=True, help_text="Requests a second of all its jobs together.")
    requests = serializers.IntegerField(allow_null=True, help_text="All that its jobs have sent so far.")
    used_at = serializers.DateTimeField(allow_null=True, help_text="When the last job that sent any had ended.")
    used_requests = serializers.IntegerField(allow_null=True, help_text="What that one sent.")
    used_per_s = serializers.IntegerField(allow_null=True, help_text="Requests a second while it sent them.")
    waits_for = serializers.CharField(help_text="Why a job does not go on; empty: none waits.")
    verified_at = serializers.DateTimeField(allow_null=True, help_text="When it was compared with the rows last.")
    verified_right = serializers.BooleanField(allow_null=True, help_text="Nothing was found that does harm.")
    verified = serializers.CharField(source="verified_sentence", help_text="What was found; empty: never verified.")
