"""A side that Spark reads: filters are built and probed inside the JVM, where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quality.domain.bloom import Bloom, Shape
from quality.domain.bloom_keys import NoKey
from quality.engines.deadline import deadline
from quality.engines.scan import CannotRead, HudiCopy, Limits, One, Part, Target
from quality.engines.slices import snapshot
from quality.exchanges.sides import Left, Probed
from quality.spark.bloom import Held, UnknownColumn, built, built_and_probed, first_keys, present_keys, probed
from quality.spark.session import quality_session

T = TypeVar("T")
_NOTHING = Held(0, 0, ())


def side(target: Target, part: Part, columns: Sequence[str], limits: Limits) -> OnSpark:
    """Raises CannotRead where there is no such table."""
    if not isinstance(target, HudiCopy):
        raise CannotRead(
            "Spark reads Hudi tables here; for files choose engine=duckdb, for a table of a database engine=sqlalchemy."
        )
    if not snapshot(target.uri, logs=True).slices:
        return OnSpark(None, columns, limits)
    frame = quality_session().read.format("hudi").load(target.uri)
    rows = frame.where(F.col(f"`{part.column}`") == part.value) if isinstance(part, One) else frame
    return OnSpark(rows, columns, limits)


class OnSpark:
    """The rows of one side as a frame; None: nothing was written there yet."""

    def __init__(self, rows: DataFrame | None, columns: Sequence[str], limits: Limits) -> None:
        self.columns = columns
        self._rows = rows
        self._left = Left(limits)

    def count(self) -> int:
        return self._bounded(lambda rows: rows.count(), 0)

    def build(self, shape: Shape, share: float) -> str:
        return self._bounded(lambda rows: built(rows, self.columns, shape, share), Bloom(shape).text())

    def probe(self, filter_text: str, share: float) -> Probed:
        held = self._bounded(lambda rows: probed(rows, self.columns, filter_text, share), _NOTHING)
        return _told(held)

    def build_and_probe(self, shape: Shape, filter_text: str, share: float) -> tuple[str, Probed]:
        built_here, held = self._bounded(
            lambda rows: built_and_probed(rows, self.columns, shape, filter_text, share),
            (Bloom(shape).text(), _NOTHING),
        )
        return built_here, _told(held)

    def sample(self, size: int, salt: str) -> list[bytes]:
        nothing = list[str]()
        return [key.encode() for key in self._bounded(lambda rows: first_keys(rows, self.columns, size, salt), nothing)]

    def among(self, keys: Collection[bytes]) -> set[bytes]:
        wanted, nothing = [key.decode() for key in keys], list[str]()
        return {key.encode() for key in self._bounded(lambda rows: present_keys(rows, self.columns, wanted), nothing)}

    def _bounded(self, work: Callable[[DataFrame], T], nothing: T) -> T:
        """What `work` makes of the rows; its jobs are cancelled when their time is over."""
        if self._rows is None:
            return nothing
        context, group = self._rows.sparkSession.sparkContext, uuid4().hex
        context.setJobGroup(group, "lakehub exchange", interruptOnCancel=True)
        try:
            with deadline(self._left.limits().timeout, partial(context.cancelJobGroup, group)):
                return work(self._rows)
        except (NoKey, UnknownColumn) as unfit:
            raise CannotRead(str(unfit)) from unfit
        except (PySparkException, Py4JJavaError) as failed:
            late = "cancelled" in str(failed)
            why = "it took longer than its timeout" if late else str(failed).strip().splitlines()[0]
            raise CannotRead(f"the exchange on Spark failed: {why}") from failed


def _told(held: Held) -> Probed:
    return Probed(held.keys, held.matching, tuple(key.encode() for key in held.missing))
