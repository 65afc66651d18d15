"""What moves data into the lake, and the facts that moving it leaves: runs, commits, touched partitions, findings;
and the schemas of change events."""

from __future__ import annotations

from ingestion.models.backfills import Backfill as Backfill
from ingestion.models.backfills import BackfillChunk as BackfillChunk
from ingestion.models.backfills import BackfillState as BackfillState
from ingestion.models.backfills import ChunkState as ChunkState
from ingestion.models.captures import Capture as Capture
from ingestion.models.captures import CaptureHour as CaptureHour
from ingestion.models.captures import SchemaSubject as SchemaSubject
from ingestion.models.captures import SchemaVersion as SchemaVersion
from ingestion.models.captures import SourceHour as SourceHour
from ingestion.models.captures import TapServer as TapServer
from ingestion.models.index_changes import IndexChange as IndexChange
from ingestion.models.index_clusters import IndexAllowance as IndexAllowance
from ingestion.models.index_clusters import IndexCluster as IndexCluster
from ingestion.models.index_clusters import IndexShare as IndexShare
from ingestion.models.lake import Commit as Commit
from ingestion.models.lake import Finding as Finding
from ingestion.models.lake import ReaderPosition as ReaderPosition
from ingestion.models.lake import TouchedPartition as TouchedPartition
from ingestion.models.lineage import LineageReceiver as LineageReceiver
from ingestion.models.pipelines import BatchOutcome as BatchOutcome
from ingestion.models.pipelines import Pipeline as Pipeline
from ingestion.models.pipelines import RefusedBatch as RefusedBatch
from ingestion.models.replicas import Replica as Replica
from ingestion.models.runs import BlockedInput as BlockedInput
from ingestion.models.runs import CopyLease as CopyLease
from ingestion.models.runs import JobKind as JobKind
from ingestion.models.runs import JobRun as JobRun
from ingestion.models.runs import JobState as JobState
from ingestion.models.runs import ReplayRequest as ReplayRequest
from ingestion.models.runs import SourcePlace as SourcePlace
from ingestion.models.runs import SourceQuota as SourceQuota
