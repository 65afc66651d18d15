"""Rows that a table of the lake cannot hold, though each has a key: Hudi names a row by one text and a partition by a folder. The rules are those for rows that are ingested (`fitting`), and that a partition is read as what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import pairwise
from operator import add, and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading.fitting import MAX_KEY_BYTES, MAX_NAME_BYTES, PLACEHOLDERS

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = "%[0-9A-Fa-f]{2}"
"""Hudi reads it as what it stands for. A slash ends the name of a folder, and might lead out of the table; what is before a colon is taken for the scheme of a URI."""


def unfit_keys(table: TableSpec, types: Mapping[str, str]) -> dict[str, Column]:
    """By the words for it, which rows are unfit."""
    key, partition = table.record_key, table.partition_column
    texts = [name for name in key if types[name] == "string"]
    unfit = dict(_unfit_parts(key, texts)) if key[1:] else {}
    if key[1:] and partition is None:
        unfit |= {f"`{name}` is an empty text": F.col(name) == "" for name in texts}
    elif len(texts) == len(key):
        # A key of several columns may have an empty part where the table has partitions.
        verb = "are empty texts" if key[1:] else "is an empty text"
        unfit[f"{' and '.join(f'`{name}`' for name in key)} {verb}"] = reduce(and_, (F.col(name) == "" for name in key))
    if texts:
        too_long = reduce(add, map(F.octet_length, texts)) > MAX_KEY_BYTES
        unfit[f"the record key has more than {MAX_KEY_BYTES:,} bytes"] = too_long
    if partition is not None and types[partition] == "string":
        most, name = MAX_NAME_BYTES - len(f"{partition}="), F.col(partition)
        # An expression is matched only where there can be an escape: it takes as long as all the rest.
        escaped = F.contains(name, F.lit("%")) & name.rlike(_ESCAPE)
        wrong = [
            name.isin("", NO_PARTITION),
            *(F.contains(name, F.lit(each)) for each in "/:\0"),
            escaped,
            F.octet_length(name) > most,
        ]
        words = f"`{partition}`, which names the partition, is empty or `{NO_PARTITION}`, has a slash, colon, NUL or escape (`%41`), or more than {most} bytes,"
        unfit[words] = reduce(or_, wrong)
    return unfit


def _unfit_parts(key: tuple[str, ...], texts: list[str]) -> Iterator[tuple[str, Column]]:
    """Of a key of several columns, which Hudi writes as `a:1,b:2`."""
    for name, following in pairwise(key):
        if name in texts:
            separator = f",{following}:"
            words = f"`{name}` has `{separator}` in it, which separates the columns of a key,"
            yield words, F.contains(F.col(name), F.lit(separator))
    for name in texts:
        words = (
            f"`{name}` is {' or '.join(f'`{word}`' for word in PLACEHOLDERS)}, which stand for missing parts of a key,"
        )
        yield words, F.col(name).isin(*PLACEHOLDERS)
