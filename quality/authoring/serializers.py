"""How rules, metrics and what is proposed read in JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lakehub.catalog.serializers import Seconds
from quality.backtest import DAYS
from quality.domain.backtest import PastRun
from quality.domain.rules import BadRule
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


class NewRuleSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/rules` takes; see docs/checks.md for the parameters of each kind."""

    kind = serializers.CharField(max_length=20)
    column = serializers.CharField(max_length=100, default="", allow_blank=True)
    parameters = serializers.DictField(default=dict)
    by = serializers.CharField(max_length=100, default="", allow_blank=True)
    enabled = serializers.BooleanField(default=True)


class ProposalSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="rule.kind")
    column = serializers.CharField(source="rule.column")
    parameters = serializers.JSONField(source="rule.parameters")
    expression = serializers.CharField(source="rule.expression")
    title = serializers.CharField(source="rule.title")
    evidence = serializers.CharField()
    why = serializers.CharField()


class ProposedSerializer(serializers.Serializer[Any]):
    """Rules that the last complete partition keeps and that are not set yet."""

    data_center = serializers.CharField()
    partition = serializers.CharField()
    rows = serializers.IntegerField()
    scans = serializers.IntegerField()
    proposals = ProposalSerializer(many=True)


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
        return sorted(one.name for one in row.inputs.all())


class NewMetricSerializer(serializers.Serializer[Any]):
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


class AskBacktestSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/backtest` takes: an expression, or the key of a test."""

    expression = serializers.CharField(max_length=4000, default="", allow_blank=True)
    test = serializers.CharField(max_length=100, default="", allow_blank=True)
    data_center = serializers.CharField(max_length=63, default="", allow_blank=True)
    days = serializers.IntegerField(default=DAYS)


class PastRunSerializer(serializers.Serializer[PastRun]):
    """What the test says of one partition, with the data as it is today."""

    partition = serializers.CharField(source="name")
    due_at = serializers.DateTimeField()
    outcome = serializers.CharField()
    observed = serializers.CharField()
    threshold = serializers.CharField()
    behind = serializers.CharField()
    cause = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    facts = serializers.SerializerMethodField()

    def get_facts(self, run: PastRun) -> dict[str, str]:
        return dict(run.facts)


class PageSerializer(serializers.Serializer[Any]):
    """An alarm that there would have been; `ended_at` where that is known."""

    at = serializers.DateTimeField()
    first = serializers.CharField()
    last = serializers.CharField()
    partitions = serializers.IntegerField()
    observed = serializers.CharField()
    threshold = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)


class CopyTestSerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField()
    runs = PastRunSerializer(many=True)
    pages = PageSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class BacktestSerializer(serializers.Serializer[Any]):
    """`cut`: there was no time for the oldest partitions."""

    expression = serializers.CharField()
    flattened = serializers.CharField()
    days = serializers.IntegerField()
    sustain = Seconds()
    severity = serializers.CharField()
    summary = serializers.CharField()
    cut = serializers.BooleanField()
    took = Seconds()
    copies = CopyTestSerializer(many=True)
