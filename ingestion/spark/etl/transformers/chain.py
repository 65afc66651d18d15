"""Transformers one after the other over a frame, and who of them does what none may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.spark.etl.transformers.errors import BadTransformer, error_place
from ingestion.spark.etl.transformers.files import TransformerCode
from ingestion.spark.etl.transformers.jvm import JvmTransformer
from ingestion.spark.loading.staging import STAGED_BY_SPARK
from ingestion.spark.tables.spark_columns import TIMES_IN_FULL
from lakehub.kernel.suggest import did_you_mean

_GIVEN = "_lakehub_given"
_NOTHING = " Nothing was written."
_IN_LOG = " The log of the worker has its words."
_MAX_TRIED = 1_000
"""Rows of a test."""


@dataclass(frozen=True)
class Transformer:
    name: str
    run: Callable[[DataFrame], object]


def load(codes: Sequence[TransformerCode | JvmTransformer], on_call: Callable[[str], object]) -> list[Transformer]:
    """Each file is run, once; classes are loaded when they are called. Raises BadTransformer."""
    modules, transformers = dict[str, ModuleType](), list[Transformer]()
    for code in codes:
        if isinstance(code, JvmTransformer):
            transformers.append(Transformer(code.code.name, code))
            continue
        on_call(code.name)
        if code.file not in modules:
            modules[code.file] = _module_of(code)
        function = getattr(modules[code.file], code.function, None)
        if not callable(function):
            raise BadTransformer(f"The transformer `{code.name}` cannot be used: it is no function.{_NOTHING}")
        transformers.append(Transformer(code.name, function))
    return transformers


def _module_of(code: TransformerCode) -> ModuleType:
    """Functions of it that Spark's workers call go there by value: they have no such file."""
    module = ModuleType(f"lakehub_transformers_{code.file.removesuffix('.py')}")
    module.__file__ = code.file
    sys.modules[module.__name__] = module  # dataclasses and pickle ask for it
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    _guarded(code.name, "cannot be loaded", lambda: exec(compile(code.text, code.file, "exec"), module.__dict__))  # noqa: S102  # the operator's own
    return module


def _guarded(name: str, what: str, call: Callable[[], object]) -> object:
    try:
        return call()
    except BadTransformer:
        raise
    except BaseException as problem:  # sys.exit too: it ends the run, and says so
        raise BadTransformer(
            f"The transformer `{name}` {what}: {error_place(problem)}.{_IN_LOG}{_NOTHING}"
        ) from problem


@dataclass(frozen=True)
class Chain:
    """`given`: each record key once. `stays`: columns that no transformer changes, the record key and the partition. `columns`: what comes out, types by name."""

    given: DataFrame
    transformers: Sequence[Transformer]
    stays: tuple[str, ...]
    columns: Mapping[str, str]
    on_call: Callable[[str], object] = lambda name: None

    @cached_property
    def steps(self) -> list[DataFrame]:
        """After each transformer, the last in `columns`; nothing is computed. Raises BadTransformer."""
        frames = list[DataFrame]()
        for each in self.transformers:
            self.on_call(each.name)
            before = frames[-1] if frames else self.given
            try:
                made = _guarded(each.name, "failed", partial(each.run, before))
            except BadTransformer as bad:
                if isinstance(bad.__cause__, (PySparkException, Py4JError)):
                    self._blame_failing(frames)  # what it asked of the rows is what one before it fails at
                raise
            frames.append(self._checked(each.name, made, is_last=each is self.transformers[-1]))
        self.on_call("")
        return frames

    def _checked(self, name: str, made: object, *, is_last: bool) -> DataFrame:
        if not isinstance(made, DataFrame):
            raise BadTransformer(
                f"The transformer `{name}` returns {type(made).__name__}: it has to return the DataFrame that it makes of the one it gets.{_NOTHING}"
            )
        names = {column.casefold(): column for column in made.columns}
        wanted = [*self.columns] if is_last else [*self.stays]
        whose = "which table.sql has" if is_last else "which stays as it is"
        if missing := [column for column in wanted if column.casefold() not in names]:
            hint = did_you_mean(missing[0], made.columns)
            raise BadTransformer(
                f"The transformer `{name}` returns no column `{missing[0]}`, {whose}.{hint} Add it to what it returns.{_NOTHING}"
            )
        if len(names) != len(made.columns):
            raise BadTransformer(f"The transformer `{name}` returns two columns with one name.{_NOTHING}")
        known = {column.casefold() for column in self.columns}
        if is_last and (others := [column for folded, column in names.items() if folded not in known]):
            raise BadTransformer(
                f"The transformer `{name}` returns the column `{others[0]}`, which table.sql lacks. Drop it, or add it to table.sql.{_NOTHING}"
            )
        return _in_columns(name, made, self.columns) if is_last else made

    def write(self, uri: str, numbered_as: str) -> None:
        """Raises BadTransformer where a row cannot be made, or is none of those that may be."""
        last = self.steps[-1]
        try:
            numbered = last.withColumn(numbered_as, F.monotonically_increasing_id())
            numbered.write.mode("overwrite").options(**STAGED_BY_SPARK).parquet(uri)
        except (PySparkException, Py4JError) as problem:
            self._blame_failing(self.steps)
            names = ", ".join(f"`{each.name}`" for each in self.transformers)
            raise BadTransformer(
                f"The rows of the transformers {names} cannot be written: {error_place(problem)}.{_IN_LOG}{_NOTHING}"
            ) from problem
        if _wrong_rows(last.sparkSession.read.parquet(uri), self.given, self.stays):
            self._blame_wrong_rows()

    def _blame_failing(self, frames: Sequence[DataFrame]) -> None:
        """Raises BadTransformer for the first whose rows cannot be computed."""
        for each, frame in zip(self.transformers, frames, strict=False):
            try:
                frame.write.format("noop").mode("overwrite").save()
            except (PySparkException, Py4JError) as problem:
                raise BadTransformer(
                    f"The transformer `{each.name}` failed: {error_place(problem)}.{_IN_LOG}{_NOTHING}"
                ) from problem

    def _blame_wrong_rows(self) -> None:
        for each, frame in zip(self.transformers, self.steps, strict=True):
            if wrong := _wrong_rows(frame, self.given, self.stays):
                raise BadTransformer(f"The transformer `{each.name}` returns {wrong}{_NOTHING}")
        names = ", ".join(f"`{each.name}`" for each in self.transformers)
        raise BadTransformer(
            f"One of the transformers {names} makes other rows each time: of the same rows it has to make the same.{_NOTHING}"
        )

    def check_halves(self) -> None:
        """Of a few rows: that each is made of one. Raises BadTransformer for one that makes others of a half of the rows than of all."""
        rows = self.given.limit(_MAX_TRIED + 1).collect()
        if not 2 <= len(rows) <= _MAX_TRIED:
            return
        spark = self.given.sparkSession
        halves = [self._over(spark.createDataFrame(rows[start::2], self.given.schema)) for start in (0, 1)]
        for number, each in enumerate(self.transformers):
            first, second = (half.steps[number] for half in halves)
            whole, apart = _texts(self.steps[number]), _texts(first.unionByName(second))
            if not whole.exceptAll(apart).isEmpty() or not apart.exceptAll(whole).isEmpty():
                raise BadTransformer(
                    f"The transformer `{each.name}` makes other rows of a half of the rows than of all of them. A run has only the rows that a change reaches, so each row has to be made of one row: "
                    "no groups, windows, ranks or totals over rows. Do that in the SELECT."
                )

    def _over(self, given: DataFrame) -> Chain:
        return Chain(given, self.transformers, self.stays, self.columns)


def _in_columns(name: str, made: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    casts = [F.col(f"`{each}`").cast(type_).alias(each) for each, type_ in columns.items()]
    frame = _guarded(name, "returns columns that do not fit table.sql", partial(made.select, *casts))
    assert isinstance(frame, DataFrame)
    return frame


def _wrong_rows(rows: DataFrame, given: DataFrame, stays: Sequence[str]) -> str:
    """In words; empty: each row has a record key and partition that was given, and each of these at most once."""
    made = rows.groupBy(*(F.col(f"`{name}`").alias(f"made_{number}") for number, name in enumerate(stays))).count()
    given_columns = [F.col(f"`{name}`").alias(f"given_{number}") for number, name in enumerate(stays)]
    known = given.select(*given_columns, F.lit(1).alias(_GIVEN))
    same = [made[f"made_{number}"].eqNullSafe(known[f"given_{number}"]) for number in range(len(stays))]
    sums = made.join(known, same, "left").agg(
        F.sum(F.when(F.col(_GIVEN).isNull(), F.col("count"))).alias("strange"),
        F.sum(F.col("count") - 1).alias("repeated"),
    ).first()  # fmt: skip
    assert sums is not None
    named = ", ".join(f"`{name}`" for name in stays)
    if sums["strange"]:
        return f"rows with values in {named} that no row had that it was given ({sums['strange']:,} of them). A row keeps its record key and partition: do not change them, and add no rows."
    if sums["repeated"]:
        return f"several rows with the same values in {named}, of which it was given one ({sums['repeated']:,} too many). Of a row it makes one row, or none."
    return ""


def _texts(frame: DataFrame) -> DataFrame:
    """Maps cannot be compared, their texts can."""
    rows = F.struct(*(F.col(f"`{name}`") for name in sorted(frame.columns)))
    return frame.select(F.to_json(rows, TIMES_IN_FULL).alias("row"))
