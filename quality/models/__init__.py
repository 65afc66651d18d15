"""Tests, the units that they run on, results, and each change of a unit's verdict."""

from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.monitoring import BaselineAttempt as BaselineAttempt
from quality.models.monitoring import ChangePoll as ChangePoll
from quality.models.quality_tests import Category as Category
from quality.models.quality_tests import GenerationStatus as GenerationStatus
from quality.models.quality_tests import QualityTest as QualityTest
from quality.models.quality_tests import QualityTestVersion as QualityTestVersion
from quality.models.quality_tests import SkippedCheck as SkippedCheck
from quality.models.quality_tests import TableReference as TableReference
from quality.models.results import CachedMeasurement as CachedMeasurement
from quality.models.results import FailingRows as FailingRows
from quality.models.results import Flip as Flip
from quality.models.results import HourlyResults as HourlyResults
from quality.models.results import Result as Result
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric
from quality.models.scheduling import SLOW_SOURCES as SLOW_SOURCES
from quality.models.scheduling import ConcurrencySlot as ConcurrencySlot
from quality.models.scheduling import CopyTurn as CopyTurn
from quality.models.scheduling import SlowSource as SlowSource
from quality.models.scheduling import TeamTurn as TeamTurn
from quality.models.units import OUTCOME_CHOICES as OUTCOME_CHOICES
from quality.models.units import VERDICT_CHOICES as VERDICT_CHOICES
from quality.models.units import Lane as Lane
from quality.models.units import Unit as Unit
