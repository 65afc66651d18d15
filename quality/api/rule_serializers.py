"""How rules, metrics and what is proposed read in JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from quality.domain.generation.rules import BadRule
from quality.models import ColumnRule, Metric


class RuleSerializer(serializers.Serializer[ColumnRule]):
    """A rule with the test that it makes; `problem` says why it makes none any more."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    column = serializers.CharField()
    parameters = serializers.JSONField()
    by = serializers.CharField()
    enabled = serializers.BooleanField()
    test = serializers.CharField(source="rule.key")
    expression = serializers.SerializerMethodField()
    problem = serializers.SerializerMethodField()
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()

    def get_expression(self, row: ColumnRule) -> str:
        try:
            return row.rule.expression
        except BadRule:
            return ""

    def get_problem(self, row: ColumnRule) -> str:
        try:
            return "" if row.rule.expression else "It is empty."
        except BadRule as problem:
            return str(problem)


class RuleInputSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/rules` takes; see docs/checks.md for the parameters of each kind."""

    kind = serializers.CharField(max_length=20)
    column = serializers.CharField(max_length=100, default="", allow_blank=True)
    parameters = serializers.DictField(default=dict)
    by = serializers.CharField(max_length=100, default="", allow_blank=True)
    enabled = serializers.BooleanField(default=True)


class RuleSuggestionSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="rule.kind")
    column = serializers.CharField(source="rule.column")
    parameters = serializers.JSONField(source="rule.parameters")
    expression = serializers.CharField(source="rule.expression")
    title = serializers.CharField(source="rule.title")
    evidence = serializers.CharField()
    why = serializers.CharField()


class RuleSuggestionReportSerializer(serializers.Serializer[Any]):
    """Rules that the last complete partition keeps and that are not set yet."""

    data_center = serializers.CharField()
    partition = serializers.CharField()
    rows = serializers.IntegerField()
    scans = serializers.IntegerField()
    proposals = RuleSuggestionSerializer(many=True, source="suggestions")


class MetricSerializer(serializers.Serializer[Metric]):
    """A business metric. `inputs` are the datasets that its queries read besides `dataset`."""

    name = serializers.CharField()
    description = serializers.CharField()
    team = serializers.CharField(source="team.name")
    dataset = serializers.CharField(source="dataset.name")
    inputs = serializers.SerializerMethodField()
    sql = serializers.CharField()
    second_sql = serializers.CharField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    week_over_week = serializers.CharField()
    agreement = serializers.CharField()
    anomaly = serializers.BooleanField()
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()

    def get_inputs(self, row: Metric) -> list[str]:
        return sorted(dataset.name for dataset in row.inputs.all())


class MetricInputSerializer(serializers.Serializer[Any]):
    """What `POST /metrics` takes."""

    name = serializers.CharField(max_length=63)
    dataset = serializers.CharField(max_length=63)
    team = serializers.CharField(max_length=63, default="", allow_blank=True)
    sql = serializers.CharField(max_length=20_000)
    second_sql = serializers.CharField(max_length=20_000, default="", allow_blank=True)
    low = serializers.FloatField(default=None, allow_null=True)
    high = serializers.FloatField(default=None, allow_null=True)
    week_over_week = serializers.CharField(max_length=20, default="", allow_blank=True)
    agreement = serializers.CharField(max_length=20, default="0.1%")
    anomaly = serializers.BooleanField(default=False)
    description = serializers.CharField(max_length=2000, default="", allow_blank=True)
