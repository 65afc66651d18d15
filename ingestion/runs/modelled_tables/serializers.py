"""The bodies of what the API says of pipelines."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ingestion.domain.pipelines.lineage.uses import Use
from ingestion.domain.pipelines.plan import Effect
from ingestion.domain.pipelines.reading import FILES
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH
from ingestion.models import RefusedBatch
from ingestion.pipelines.column_lineage import MAX_COLUMNS, MAX_USED
from ingestion.runs.modelled_tables.decisions import MAX_REASON_LENGTH
from ingestion.runs.modelled_tables.progress import MAX_PENDING, ROW_KINDS, CopyProgress, InputProgress


class PipelineFilesSerializer(serializers.Serializer[Any]):
    files = serializers.DictField(
        child=serializers.CharField(max_length=MAX_LENGTH, trim_whitespace=False),
        help_text=f"The texts of {', '.join(FILES)}, each by its name.",
    )
    basis = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=64,
        help_text="Of the plan that was looked at: where what it was made against has changed since, nothing is registered and the answer is 409.",
    )


class RegistrationSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField(source="dataset.name")
    is_new = serializers.BooleanField(help_text="It was not registered before.")
    rebuilds = serializers.IntegerField(help_text="How many of its tables are recomputed, as rows may be others.")


class PipelineInputSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As its SELECT calls it.")
    dataset = serializers.CharField()
    is_followed = serializers.BooleanField(help_text="Each change of it leads to the rows that it reaches.")


class PipelineSerializer(serializers.Serializer[Any]):
    """A pipeline that is registered."""

    files = serializers.DictField(child=serializers.CharField())
    changed_at = serializers.DateTimeField()
    changed_by = serializers.CharField()
    inputs = PipelineInputSerializer(many=True)


class UsedColumnSerializer(serializers.Serializer[Any]):
    input = serializers.CharField(help_text="As the SELECT calls it.")
    dataset = serializers.CharField()
    column = serializers.CharField()
    uses = serializers.ListField(
        child=serializers.ChoiceField([use.value for use in Use]),
        help_text="What is done with it, as OpenLineage says it: the value is made from it (IDENTITY, TRANSFORMATION, AGGREGATION), or it decides what the value is or which rows there are.",
    )


class MadeColumnSerializer(serializers.Serializer[Any]):
    column = serializers.CharField()
    is_traced = serializers.BooleanField(
        help_text="False: it may be made from any column of the inputs; `problem` says why."
    )
    made_from = UsedColumnSerializer(many=True, help_text=f"The first {MAX_USED}.")
    more = serializers.IntegerField(help_text="How many more.")


class ColumnLineageSerializer(serializers.Serializer[Any]):
    """From which columns of its inputs the columns of a modelled table are made, by its SELECT as it is registered."""

    columns = MadeColumnSerializer(many=True, help_text=f"The first {MAX_COLUMNS:,}.")
    more_columns = serializers.IntegerField(help_text="How many more.")
    rows = UsedColumnSerializer(
        many=True, help_text=f"What decides which rows there are, whatever is in them: the first {MAX_USED}."
    )
    more_rows = serializers.IntegerField(help_text="How many more.")
    problem = serializers.CharField(allow_blank=True, help_text="Why not all is known; empty: it is.")


class RefusalSerializer(serializers.Serializer[Any]):
    audit = serializers.CharField()
    test = serializers.CharField()
    partitions = serializers.ListField(
        child=serializers.CharField(), help_text="In which it fails, the worst first; empty: the table has none."
    )
    observed = serializers.CharField()
    threshold = serializers.CharField()
    cause = serializers.CharField()


class RowsSerializer(serializers.Serializer[Any]):
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_null=True)))


class RefusedBatchSerializer(serializers.ModelSerializer[RefusedBatch]):
    """Rows that a run has made, and that its audits did not let into the table."""

    data_center = serializers.CharField(source="copy.data_center.name")
    audits = RefusalSerializer(many=True)
    samples = serializers.SerializerMethodField()

    class Meta:
        model = RefusedBatch
        fields = (
            "id", "data_center", "kind", "run", "audits", "samples", "kept_at", "position", "refused_at",
            "outcome", "decided_by", "reason", "decision_run", "ended_at",
        )  # fmt: skip

    @extend_schema_field(RowsSerializer(many=True))
    def get_samples(self, batch: RefusedBatch) -> list[Any]:
        """Of each audit some rows that are the reason; none for who is no member of the team."""
        return list(batch.samples) if self.context["may_see_rows"] else []


class DecisionSerializer(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        ["publish", "drop"],
        help_text="`publish`: commit what the inputs hold now, without audits. `drop`: go past the changes, and leave the table as it is.",
    )
    run = serializers.IntegerField(help_text="The refused run, as it was shown: another one is refused with 409.")
    reason = serializers.CharField(allow_blank=True, max_length=MAX_REASON_LENGTH)


class TableSizeSerializer(serializers.Serializer[Any]):
    rows = serializers.IntegerField()
    bytes = serializers.IntegerField()
    files = serializers.IntegerField()


class ChangeSerializer(serializers.Serializer[Any]):
    what = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    effect = serializers.ChoiceField([effect.value for effect in Effect])


class TableReadSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    dataset = serializers.CharField()
    size = TableSizeSerializer(allow_null=True, help_text="In the first data center; null: not known.")


class TableWriteSerializer(serializers.Serializer[Any]):
    """What is written, in each data center."""

    size = TableSizeSerializer(
        allow_null=True, help_text="In the first data center; 0 where no row changes; null: not known."
    )
    is_estimate = serializers.BooleanField(
        help_text="`size` is that of the table now, whose rows are all replaced: about as many are written."
    )
    reason = serializers.CharField(
        allow_blank=True, help_text="Why the size is not known, such as that there is no table before the first run."
    )


class PipelineReaderSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    is_direct = serializers.BooleanField()
    problems = serializers.ListField(
        child=serializers.CharField(), help_text="What is wrong with its files once the table is as planned."
    )


class PlanSerializer(serializers.Serializer[Any]):
    """What registering the files would do."""

    dataset = serializers.CharField(source="checked.pipeline.name")
    record_key = serializers.ListField(source="checked.pipeline.record_key", child=serializers.CharField())
    columns = serializers.DictField(source="checked.pipeline.columns.types", child=serializers.CharField())
    inputs = PipelineInputSerializer(source="checked.pipeline.inputs", many=True)
    data_centers = serializers.ListField(
        child=serializers.CharField(), help_text="In which jobs make its rows; replicas follow them."
    )
    is_new = serializers.BooleanField()
    basis = serializers.CharField(
        help_text="A digest of what the plan was made against, to be given with the registration."
    )
    sentence = serializers.CharField()
    changes = ChangeSerializer(many=True)
    makes_rows = serializers.BooleanField(help_text="All rows of its tables are made or recomputed.")
    reads = TableReadSerializer(many=True, help_text="What is read for that, as a whole and in each data center.")
    writes = TableWriteSerializer()
    readers = PipelineReaderSerializer(many=True, help_text="Pipelines that read the table, the nearest first.")


class InputProgressSerializer(serializers.Serializer[InputProgress]):
    """Of one input in the data center of the copy."""

    name = serializers.CharField(source="input.name", help_text="As the SELECT calls it.")
    dataset = serializers.CharField(source="input.dataset")
    is_followed = serializers.BooleanField(source="input.is_followed")
    is_there = serializers.SerializerMethodField(help_text="It has a copy in this data center.")
    pending = serializers.IntegerField(
        allow_null=True,
        help_text=f"Commits that were begun after the newest that was read, {MAX_PENDING + 1} for more than {MAX_PENDING}; 0 of an input whose changes are ignored; null: none was read yet.",
    )
    waits_since = serializers.DateTimeField(allow_null=True, help_text="When the first of them was completed.")
    processed = serializers.IntegerField(
        help_text=f"Commits of the last 24 hours that were read, {MAX_PENDING + 1} for more than {MAX_PENDING}."
    )
    read_upto = serializers.DateTimeField(allow_null=True, help_text="When the newest that was read was completed.")

    def get_is_there(self, progress: InputProgress) -> bool:
        return progress.copy is not None


class NewestRunSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="pk")
    kind = serializers.CharField()
    state = serializers.CharField()
    error = serializers.CharField()


class CopyProgressSerializer(serializers.Serializer[CopyProgress]):
    """How far the pipeline of a copy is. `now` in the context."""

    copy = serializers.IntegerField(source="copy.pk", help_text="Its number, as Prometheus has it.")
    data_center = serializers.CharField(source="copy.data_center.name")
    has_table = serializers.BooleanField()
    lag_s = serializers.SerializerMethodField(
        help_text="For how long the first commit waits of an input whose changes are followed; null: it is not known."
    )
    pending = serializers.IntegerField(
        help_text=f"Of all inputs whose changes are followed, {MAX_PENDING + 1} for more than {MAX_PENDING} of one."
    )
    rows = serializers.DictField(
        child=serializers.IntegerField(), help_text=f"Of the last 24 hours: {', '.join(ROW_KINDS)}."
    )
    newest_run = NewestRunSerializer(allow_null=True)
    inputs = InputProgressSerializer(many=True)

    def get_lag_s(self, progress: CopyProgress) -> float | None:
        lag = progress.lag(now=self.context["now"])
        return None if lag is None else lag.total_seconds()
