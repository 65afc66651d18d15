"""What the catalog asks of the apps above it, bound in settings (`LAKEHUB_PORTS`).

The use cases look it up themselves, so that nothing is written past it whoever calls: the API, a form, a command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast

from django.conf import settings

from lakehub.kernel.registry import Registry


class OverridesCheck(Protocol):
    """Why these overrides of a dataset cannot be read, each with its name, its value and what would do; empty: they can."""

    def __call__(self, overrides: Mapping[str, object], *, tier: int, zone: str) -> list[str]: ...


class RunningJobs(Protocol):
    """The jobs that are at work on these copies, each by its name and number. Until the transaction ends none begins."""

    def __call__(self, copies: Collection[int]) -> list[str]: ...


class RetestCopies(Protocol):
    """Copies are read elsewhere from now on: what was known of them is unknown until it is tested anew."""

    def __call__(self, copies: Collection[int], *, now: datetime) -> None: ...


class RetestComparison(Protocol):
    """A dataset has another upstream, or is loaded from another table: what was compared with the one before is unknown."""

    def __call__(self, dataset_id: int, *, now: datetime) -> None: ...


@dataclass(frozen=True)
class Consequence:
    """What a change would do. `about`: tests, reads, incidents or gate."""

    about: str
    text: str


class LoopCheck(Protocol):
    """Why a dataset cannot lie where it does by now, with what to do: it would be made from its own table. Empty: it can."""

    def __call__(self, dataset_id: int) -> str: ...


class ChangePreview(Protocol):
    """What would come of `change`, which writes it, for the dataset of this id; nothing of it stays. Raises what the change raises."""

    def __call__(self, dataset: int, change: Callable[[], object], *, now: datetime) -> list[Consequence]: ...


def running_jobs(copies: Collection[int]) -> list[str]:
    return cast("RunningJobs", _bound("catalog.RunningJobs"))(copies)


def retest_copies(copies: Collection[int], *, now: datetime) -> None:
    cast("RetestCopies", _bound("catalog.RetestCopies"))(copies, now=now)


def retest_comparison(dataset_id: int, *, now: datetime) -> None:
    cast("RetestComparison", _bound("catalog.RetestComparison"))(dataset_id, now=now)


def loop_problem(dataset_id: int) -> str:
    return cast("LoopCheck", _bound("catalog.LoopCheck"))(dataset_id)


def preview_change(dataset: int, change: Callable[[], object], *, now: datetime) -> list[Consequence]:
    return cast("ChangePreview", _bound("catalog.ChangePreview"))(dataset, change, now=now)


def overrides_check() -> OverridesCheck:
    return cast("OverridesCheck", _bound("catalog.OverridesCheck"))


class IndexNames(Protocol):
    """The indexes that the jobs of a feed can use."""

    def __call__(self) -> Collection[str]: ...


def index_names() -> Collection[str]:
    return cast("IndexNames", _bound("catalog.IndexNames"))()


class IndexCheck(Protocol):
    """Why the datasets of these data centers cannot have this index, each with what to do."""

    def __call__(self, index: str, data_centers: Collection[str]) -> list[str]: ...


def index_check() -> IndexCheck:
    return cast("IndexCheck", _bound("catalog.IndexCheck"))


class IndexChangeObserver(Protocol):
    """The feed of a dataset has another index than before. Called in the transaction that stores it."""

    def __call__(self, dataset_id: int, was: str, becomes: str, *, actor: str, now: datetime) -> None: ...


def index_change_observer() -> IndexChangeObserver:
    return cast("IndexChangeObserver", _bound("catalog.IndexChangeObserver"))


@dataclass(frozen=True)
class CaptureFindings:
    """Why the log of a server cannot be read, what may become a problem, and why a table of it cannot be captured; each says what to do."""

    of_server: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    of_table: tuple[str, ...] = ()
    generated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column of the table that its server makes from others, from which."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """By column of the table why it cannot be captured, with what to do."""
    uncertain_keys: Mapping[str, str] = field(default_factory=dict)
    """By column its type in the lake, where no record key of a captured table may have it."""


class CaptureCheck(Protocol):
    """Of a URL whose storage is captured, and of one of its tables, which `has_cells` or rows. Raises MetadataUnavailable."""

    def __call__(self, url: str, table: str = "", *, has_cells: bool = False) -> CaptureFindings: ...


def capture_findings(url: str, table: str = "", *, has_cells: bool = False) -> CaptureFindings:
    return cast("CaptureCheck", _bound("catalog.CaptureCheck"))(url, table, has_cells=has_cells)


@dataclass(frozen=True)
class SurveyedTable:
    """The names of its columns and its key as its server has them, and why it cannot be captured. Without columns: the server does not show it now."""

    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    findings: CaptureFindings


@dataclass(frozen=True)
class CaptureSurvey:
    """`of_server`: why no table of it can be captured; none is looked at then."""

    tables: Mapping[str, SurveyedTable]
    of_server: tuple[str, ...] = ()


class CaptureSurveyor(Protocol):
    """Those tables of a captured database that `choose` takes of all their names, in one look. Raises MetadataUnavailable, and what `choose` raises."""

    def __call__(self, url: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> CaptureSurvey: ...


def survey_for_capture(url: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> CaptureSurvey:
    return cast("CaptureSurveyor", _bound("catalog.CaptureSurveyor"))(url, choose)


class SchemaChangeObserver(Protocol):
    """The columns of a dataset are others than before: {name: type} then and now. Called in the transaction that stores them."""

    def __call__(
        self,
        dataset_id: int,
        overrides: Mapping[str, object],
        before: Mapping[str, str],
        after: Mapping[str, str],
        *,
        now: datetime,
    ) -> None: ...


def schema_change_observer() -> SchemaChangeObserver:
    return cast("SchemaChangeObserver", _bound("catalog.SchemaChangeObserver"))


def _bound(port: str) -> object:
    return Registry[object]("port", settings.LAKEHUB_PORTS).get(port)
