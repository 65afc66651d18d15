"""What a job is told: which table, from where, which kind of work. Secrets go by reference, never in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.pipelines.version import PipelineVersion
from ingestion.domain.resources.job_resources import JobResources
from ingestion.spark.contract.job_kinds import KINDS, READING_KINDS
from ingestion.spark.contract.strict_json import ContractError, dump, load
from lakehub.kernel.suggest import did_you_mean

SPEC_VERSION = 1


@dataclass(frozen=True)
class PartitionSpec:
    """Which columns of the source say the partition of a row, and how (lakehub.kernel.partitions.form)."""

    columns: tuple[str, ...]
    grain: str
    zone: str
    form: str = ""


@dataclass(frozen=True)
class GlobalIndexSpec:
    """Where the Global Index of a table lies: the table `table` of an HBase. `thrift`: `host:port` of a Thrift server of it; empty: its own client asks.
    `quorum`: of its ZooKeeper, as its own client takes it, and `znode` the place there; `staging_uri`: where HFiles are written, which its region servers read.
    `requests_per_s`: what a job may ask for in a second; None: any."""

    thrift: str
    quorum: str
    staging_uri: str
    table: str
    znode: str = "/hbase"
    requests_per_s: float | None = None


@dataclass(frozen=True)
class TableSpec:
    """A table of the lake. `uri` and `error_uri` are URIs (file:///lake/dc1/flights).

    `reference_key`: the column whose greater value wins; None: what is read later wins. `index` names one of ingestion.spark.indexes.
    `partition_from`: what the partition column is made from; None: the source has it.
    `retention_hours`: how long a version of a file is kept after another has replaced it, so that whoever reads the table as it was then can end.
    `max_file_mib`: about how large a base file may get; a changed row writes its whole file anew.
    `append_only`: rows are never changed, so what the source hands over as new is inserted without a look at those stored.
    `change_log`: a new table says of each commit which rows were inserted, changed and deleted. This is fixed when a table is made.
    `tombstone_uri`: of the table that knows the deleted rows; empty: its rows come from no changelog.
    `history_uri`: of the table that has every version of its rows, if it `keeps_history`; `history_days`: for how long, 0: for ever.
    `keys_stay`: a row whose partition value has changed in the source keeps the one that it has in the table, and stays where it is.
    """

    name: str
    uri: str
    error_uri: str
    record_key: tuple[str, ...]
    reference_key: str | None = None
    partition_column: str | None = None
    index: str = "simple"
    partition_from: PartitionSpec | None = None
    retention_hours: int = 2
    max_file_mib: int = 32
    change_log: bool = True
    append_only: bool = False
    tombstone_uri: str = ""
    history_uri: str = ""
    keeps_history: bool = False
    history_days: int = 0
    keys_stay: bool = False
    global_index: GlobalIndexSpec | None = None

    @property
    def uris_beside(self) -> tuple[str, ...]:
        """Of the tables that its jobs write as well, under the same permit."""
        return tuple(uri for uri in (self.error_uri, self.tombstone_uri, self.history_uri) if uri)

    @property
    def has_metadata(self) -> bool:
        """Of each row the table keeps what its changes said of themselves, and merges by it."""
        return bool(self.tombstone_uri)


@dataclass(frozen=True)
class SourceSpec:
    """Where rows come from: a plug-in of ingestion.sources, the reference of its URL, and the object to read there.

    `overlap_s`: how far behind the watermark to look again, for transactions that commit late.
    `option_refs`: options whose values are secrets, each by its reference.
    `commit_rows`, `commit_bytes`, `commit_s`: what one commit takes at most of rows, of their bytes in memory, and of seconds to read them; None: any.
    `rows_per_s`: how fast this job may read; None: as fast as it can. `is_paid_for`: others read there too, and the launcher says when to read on.
    `readers`: how many connections may read at once.
    """

    plugin: str
    url_ref: str
    object: str
    cursor_column: str | None = None
    overlap_s: float = 0.0
    chunk_rows: int = 20_000
    options: dict[str, str] = field(default_factory=dict)
    option_refs: dict[str, str] = field(default_factory=dict)
    commit_rows: int | None = None
    commit_bytes: int | None = None
    commit_s: float | None = None
    rows_per_s: float | None = None
    is_paid_for: bool = False
    readers: int = 1

    @property
    def limits(self) -> BatchLimits:
        return BatchLimits(self.commit_rows, self.commit_bytes, self.commit_s)


@dataclass(frozen=True)
class DeleteSpec:
    """Rows to delete: the given keys (each a list of the record key's values, as text), or a share of each partition named."""

    keys: tuple[tuple[str, ...], ...] = ()
    share: float | None = None


@dataclass(frozen=True)
class ReplaySpec:
    """Rejected rows to try again, by their `error_key`, and who asked. Rows that are resolved, or that do not exist, are left out.

    `fixes`: by key the values that take the place of the row's own, each a JSON object by column; `values`: those for the rows that have no fix.
    """

    keys: tuple[str, ...]
    asked_by: str
    fixes: dict[str, str] = field(default_factory=dict)
    values: str = "{}"


@dataclass(frozen=True)
class ClusterSpec:
    """Which small files to put together: where a partition has at least `min_files` that were not written for `quiet_s`; up to `max_mib` of them."""

    min_files: int = 2
    quiet_s: float = 0.0
    max_mib: int = 256


@dataclass(frozen=True)
class LogMoveSpec:
    """Where to read the changelog on from: by topic and partition an offset. `may_skip`: also where changes are left out."""

    offsets: dict[str, dict[str, int]]
    may_skip: bool = False


@dataclass(frozen=True)
class VerifySpec:
    """How the index is compared with its table: which `share` of the keys, and whether what is wrong is put right."""

    share: float = 1.0
    repairs: bool = False


@dataclass(frozen=True)
class RawSpec:
    """The raw chunks of a captured table. `uri`: a folder for its loads. `is_kept`: also after the load. `is_read`: a load reads those of an earlier one, and
    not the source."""

    uri: str
    is_kept: bool = True
    is_read: bool = False


@dataclass(frozen=True)
class PipelineInputSpec:
    """A table that a pipeline reads, by the `name` that its queries call it. `affected_keys`: the query for what its changes reach, over the views
    of `ingestion.domain.pipelines.view_names`; empty: its changes are not followed. `affected_partitions`: the same for partitions; empty: rows are replaced by key.
    `partition_source`: its column whose values are those of the target's partition column; empty: there is none."""

    name: str
    uri: str
    affected_keys: str = ""
    affected_partitions: str = ""
    partition_source: str = ""


@dataclass(frozen=True)
class TransformerSpec:
    """A function `fares.py:round_fares` of the operator's folder, or a class `fares.jar:com.example.RoundFares`, which gets `properties`, and needs `jars` besides.
    `digest`: of the files, as they were registered; empty: not known."""

    name: str
    digest: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()

    @property
    def is_jvm(self) -> bool:
        return ".jar:" in self.name


@dataclass(frozen=True)
class PipelineSpec:
    """How the rows of the table are made. `columns`: types by name, in order. `precombine`: of rows with one key the one with the greatest value in
    this column stays. `audits`: tests by name, that the rows have to pass before they are committed, and `auditor`, as `module:function`, who judges them.
    `skip_to`: by input a completion up to which its changes are left out; empty: none are. `transformers`: after the SELECT, in this order, from
    `transformers_folder` of this machine. `resources`: of the session that makes the rows; None: the one that all jobs share.
    `version`: which the rows are made by; None: not known, and not noted."""

    inputs: tuple[PipelineInputSpec, ...]
    transform: str
    columns: dict[str, str]
    precombine: str = ""
    audits: dict[str, str] = field(default_factory=dict)
    auditor: str = ""
    skip_to: dict[str, str] = field(default_factory=dict)
    transformers: tuple[TransformerSpec, ...] = ()
    transformers_folder: str = ""
    resources: JobResources | None = None
    version: PipelineVersion | None = None

    @property
    def needs_own_session(self) -> bool:
        """It asks for another size than the shared one has, or brings code into the JVM."""
        return self.resources is not None or any(each.is_jvm for each in self.transformers)

    @property
    def overwrites(self) -> bool:
        """Partitions are made anew as a whole."""
        return any(each.affected_partitions for each in self.inputs)


@dataclass(frozen=True)
class ReplicationSpec:
    """What the table is made from, file by file. `mib_per_s`: how much of it may be read in a second; None: as much as can be."""

    source_uri: str
    mib_per_s: float | None = None


@dataclass(frozen=True)
class JobSpec:
    """One job. The same `run_id` never commits twice.

    `keys`: of a backfill of a captured table, the rows to read again, each as the values of its record key.
    `upto`: rows with a later watermark are not there yet. `clock_ahead_s`: how far the platform's clock is ahead of the wall's (0 in production): commits are timed by the wall.
    `window_days`: how far back from `upto` a job of the kind `lineage` looks.
    `staging_uri`: where rows wait on their way to Spark; every executor must reach it. `deadline_s`: how long the whole job may take.
    `lease_wait_s`: how long the job may wait for the lease of the copy before it is put off; None: until its deadline.
    `one_commit`: whoever launched the job has others to see to; what is left to read is for the next.
    """

    run_id: str
    kind: str
    table: TableSpec
    source: SourceSpec | None = None
    pipeline: PipelineSpec | None = None
    upto: str | None = None
    clock_ahead_s: float = 0.0
    partitions: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    delete: DeleteSpec | None = None
    replay: ReplaySpec | None = None
    cluster: ClusterSpec = ClusterSpec()
    verify: VerifySpec = VerifySpec()
    log_move: LogMoveSpec | None = None
    raw: RawSpec | None = None
    replication: ReplicationSpec | None = None
    replace: bool = False
    window_days: int = 30
    staging_uri: str | None = None
    deadline_s: float = 3600.0
    lock_wait_s: float = 60.0
    lease_wait_s: float | None = None
    one_commit: bool = False
    spec_version: int = SPEC_VERSION

    def __post_init__(self) -> None:
        for problem in _validation_errors(self):
            raise ContractError(problem)

    @classmethod
    def from_json(cls, text: str, *, source: str = "the spec") -> JobSpec:
        return load(cls, text, source=source)

    @classmethod
    def from_file(cls, path: Path) -> JobSpec:
        return cls.from_json(path.read_text(), source=str(path))

    def to_json(self) -> str:
        return dump(self)

    @property
    def needs_own_session(self) -> bool:
        return self.pipeline is not None and self.pipeline.needs_own_session

    @property
    def upto_at(self) -> datetime | None:
        return None if self.upto is None else parse_instant(self.upto, "upto")


def parse_instant(text: str, name: str) -> datetime:
    """An ISO 8601 time with an offset, in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ContractError(
            f"`{name}` is {text!r}, which is not an ISO 8601 time such as 2026-11-16T05:00:00Z."
        ) from None
    if moment.tzinfo is None:
        raise ContractError(f"`{name}` is {text!r}, which has no offset. Add one, as in {text}Z.")
    return moment.astimezone(UTC)


def _validation_errors(spec: JobSpec) -> Iterator[str]:
    if spec.spec_version != SPEC_VERSION:
        yield f"The spec has version {spec.spec_version}, but this program reads version {SPEC_VERSION}."
    if spec.kind not in KINDS:
        yield f"There is no job of the kind `{spec.kind}`.{did_you_mean(spec.kind, KINDS)}"
    elif spec.kind in READING_KINDS and (spec.source is None) == (spec.pipeline is None):
        yield f"A job of the kind `{spec.kind}` needs a `source` or a `pipeline`, one of the two."
    for label, uri in _named_uris(spec):
        if not urlsplit(uri).scheme:
            yield f"{label} is {uri!r}, which is not a URI such as file:///lake/dc1/{spec.table.name}."
    yield from _table_errors(spec.table)
    if spec.source is not None:
        yield from _limit_errors(spec.source)
    yield from _row_errors(spec)
    yield from _work_errors(spec)
    if spec.upto is not None:
        parse_instant(spec.upto, "upto")


def _table_errors(table: TableSpec) -> Iterator[str]:
    if not table.record_key:
        yield f"The table `{table.name}` has no record key: name the columns that identify a record."
    if table.keeps_history and not (table.history_uri and table.has_metadata):
        yield f"The table `{table.name}` keeps a history, so it needs `history_uri` and `tombstone_uri`."
    if table.history_days < 0:
        yield f"`table.history_days` is {table.history_days}: it is a whole number of days, 0 for ever."
    if table.retention_hours < 1:
        yield f"`table.retention_hours` is {table.retention_hours}: it is a whole number of hours, at least 1."
    if table.max_file_mib < 1:
        yield f"`table.max_file_mib` is {table.max_file_mib}: it is a whole number of MiB, at least 1."


def _row_errors(spec: JobSpec) -> Iterator[str]:
    """Of the rows that a job reads again or deletes."""
    if spec.keys and (spec.kind != "backfill" or spec.partitions):
        yield "`keys` are those of a backfill of single rows, which names no partitions."
    if spec.kind == "backfill" and not spec.keys and bool(spec.partitions) != bool(spec.table.partition_column):
        yield "A backfill names `partitions` where the table has them, and only there."
    if spec.kind == "delete" and (spec.delete is None or bool(spec.delete.keys) == bool(spec.delete.share)):
        yield "A delete needs `delete.keys` or `delete.share`, one of the two."
    if spec.delete is not None and spec.delete.share is not None and not 0 < spec.delete.share <= 1:
        yield f"`delete.share` is {spec.delete.share}: a share lies above 0 and is at most 1."
    if spec.kind == "replay" and spec.replay is None:
        yield "A replay needs `replay`: which rows of the error table to try again."


def _work_errors(spec: JobSpec) -> Iterator[str]:
    """Of what else a kind of job needs to know."""
    if spec.kind == "set_position" and (spec.log_move is None or spec.source is None):
        yield "A job of the kind `set_position` needs `log_move` and a `source`: where to read the changelog on."
    if spec.kind == "replicate" and spec.replication is None:
        yield "A job of the kind `replicate` needs `replication`: the table that this one is made equal to."
    if spec.replication is not None and spec.replication.mib_per_s is not None and not spec.replication.mib_per_s > 0:
        yield f"`replication.mib_per_s` is {spec.replication.mib_per_s}: it is above 0, or left out."
    if spec.cluster.min_files < 2 or spec.cluster.max_mib < 1 or not spec.cluster.quiet_s >= 0:
        yield "`cluster` needs `min_files` of at least 2, `max_mib` of at least 1, and `quiet_s` of at least 0."
    if not 0 < spec.verify.share <= 1:
        yield f"`verify.share` is {spec.verify.share}: a share lies above 0 and is at most 1."


def _limit_errors(source: SourceSpec) -> Iterator[str]:
    if source.rows_per_s is not None and not source.rows_per_s > 0:
        yield f"`source.rows_per_s` is {source.rows_per_s}: it is above 0, or left out."
    if source.readers < 1:
        yield f"`source.readers` is {source.readers}: it is a whole number, at least 1."
    try:
        source.limits  # noqa: B018  asked for its errors
    except ValueError as problem:
        yield str(problem)


def _named_uris(spec: JobSpec) -> list[tuple[str, str]]:
    named = [("`table.uri`", spec.table.uri), ("`table.error_uri`", spec.table.error_uri)]
    optional = [
        ("`staging_uri`", spec.staging_uri),
        ("`table.tombstone_uri`", spec.table.tombstone_uri),
        ("`table.history_uri`", spec.table.history_uri),
        ("`raw.uri`", "" if spec.raw is None else spec.raw.uri),
        ("`replication.source_uri`", "" if spec.replication is None else spec.replication.source_uri),
    ]
    return named + [(label, uri) for label, uri in optional if uri]
