"""`python -m tests.contracts.damaged_parquet <folder> <seed>`: reads nested Parquet files with a changed byte at every place of the
footer, and some with changed bytes anywhere. Each is read whole, or refused by its name. Says how many of each there were.

A process of its own: the library could end it.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.sources import SOURCES, SourceConfig, SourceError

ROWS = {
    "id": pa.array(range(40)),
    "name": pa.array(["a", None, "c" * 40, "d"] * 10),
    "tags": pa.array([["x", "yy"], [], None, ["z"] * 5] * 10),
    "lines": pa.array([[{"sku": "s", "prices": [1, 2, None]}]] * 40),
}
ANYWHERE = 200


def whole_file() -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(ROWS), content, compression="zstd", store_schema=False, row_group_size=25)
    return content.getvalue()


def damaged_files(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    places = [[place] for place in range(len(whole) - footer, len(whole))]
    places += [[chance.randrange(len(whole)) for _ in range(chance.choice([1, 2, 10]))] for _ in range(ANYWHERE)]
    for changed in places:
        content = bytearray(whole)
        for place in changed:
            content[place] ^= chance.randrange(1, 256)
        yield bytes(content)


def main(folder: Path, seed: int) -> None:
    print(f"seed {seed}", flush=True)
    file = folder / "rows.parquet"
    read = refused = 0
    for number, content in enumerate(damaged_files(whole_file(), random.Random(seed))):
        file.write_bytes(content)
        print(f"file {number}", file=sys.stderr, flush=True)
        try:
            chunks = SOURCES.get("files")(SourceConfig(folder.as_uri(), file.name)).snapshot().batches
            rows = sum(chunk.rows + len(chunk.unreadable) for chunk in chunks)
            if rows != len(ROWS["id"]):
                raise AssertionError(f"{rows} rows were read, and nothing was told of the others")
            read += 1
        except SourceError as refusal:
            if file.name not in str(refusal):
                raise
            refused += 1
    print(f"{read} read, {refused} refused")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
