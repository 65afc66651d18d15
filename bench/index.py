"""The Global Index in HBase: how fast its files are made and loaded, and what it takes to change a part of a table by it, and by the other indexes, Hudi's own among them.

HFiles are written beside HBase's ImportTsv and puts, and loaded into tables that are pre-split and not. Then batches of 0.1, 1 and 10 % of the rows of
tables are brought in, spread and clustered, a fifth of them new rows. Lakehub's times are those of whole jobs, from reading the source on; Hudi's are those of its writer alone. The HBase is the
bench's own: one region server, on this machine.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bench.harness import Report, run
from bench.indexing import changes, hfiles, loads
from bench.indexing.changes import Changes, Kind, slug_of
from bench.indexing.look_ups import LookUp
from bench.indexing.server import HBase, hbase
from bench.writing.contenders import GLOBAL_BLOOM, GLOBAL_SIMPLE, RECORD_INDEX, Contender, Lakehub
from bench.writing.sessions import session

PARTS = ("hfiles", "loads", "changes")
GROWTH = "growth"
"""Of the changes only what a look-up grows with the table: a tenth of their time."""
MAX_GROWTH, FASTER, JUDGED_SHARES = 1.2, 1.0, (0.001, 0.01)
OURS = "Lakehub, hbase"


@dataclass(frozen=True)
class Size:
    """`written`, `imported`, `put`: rows by our writer, by ImportTsv and through Thrift. `loaded`: entries, in `files` HFiles."""

    written: int
    imported: int
    put: int
    loaded: int
    files: int
    changes: changes.Size
    with_peers: bool = True


_SHARES = tuple(Kind(share, spread) for share in (0.001, 0.01, 0.1) for spread in (False, True))
FULL = Size(2_000_000, 1_000_000, 200_000, 2_000_000, 8, changes.Size((1_000_000, 5_000_000), _SHARES, 30, 10_000))
QUICK = Size(
    100_000,
    10_000,
    5_000,
    20_000,
    4,
    changes.Size((5_000,), (Kind(0.01, True),), 4, 50, turns=1, is_brief=True),
    with_peers=False,
)


def main() -> int:
    return run("index", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", choices=(*PARTS, GROWTH), help="only this one")
    parser.add_argument("--rows", type=int, action="append", help="of a table that is changed, instead of the usual")
    parser.add_argument(
        "--share", type=float, action="append", help="of its rows in a batch, such as 0.01, instead of the usual"
    )


def bench(report: Report) -> None:
    size = QUICK if report.quick else FULL
    parts = PARTS if report.arguments.part is None else (report.arguments.part,)
    with tempfile.TemporaryDirectory(prefix="lakehub-bench-index-") as name:
        folder = Path(name)
        with hbase(folder / "server") as server:
            if "hfiles" in parts:
                counts = {"written": size.written, "imported": size.imported, "put": size.put}
                hfiles.compare(report, server, folder, **counts)
            if "loads" in parts:
                with session() as spark:
                    loads.compare(report, spark, server, folder, rows=size.loaded, files=size.files)
            if "changes" in parts:
                _changes(report, server, _with_shares(size, report.arguments.share))
            if GROWTH in parts:
                _changes(report, server, replace(size, changes=replace(size.changes, kinds=()), with_peers=False))


def _with_shares(size: Size, shares: list[float] | None) -> Size:
    kinds = tuple(kind for kind in size.changes.kinds if shares is None or kind.share in shares)
    return replace(size, changes=replace(size.changes, kinds=kinds))


def _changes(report: Report, server: HBase, size: Size) -> None:
    """`size.changes` without kinds of batches: only the look-ups of each table."""
    grown = dict[int, dict[str, Changes]]()
    for table in report.arguments.rows or size.changes.tables:
        made = dict[str, Changes]()
        for contender in _contenders(server, table, with_peers=size.with_peers):
            is_ours = contender.name == OURS
            beside = server.processes if is_ours else ()
            is_grown = is_ours or contender is RECORD_INDEX
            made[contender.name] = changes.measure(contender, table, size.changes, is_grown=is_grown, beside=beside)
            report.print_line(_summary(contender.name, table, made[contender.name]))
        if size.changes.kinds:
            changes.tell(report, table, made)
            _judge(report, table, made)
        grown[table] = made
    _tell_growth(report, grown, size.changes.grown)


def _contenders(server: HBase, table: int, *, with_peers: bool) -> list[Contender]:
    ours = Lakehub("hbase", global_index=server.index(f"orders_{table}"))
    if not with_peers:
        return [ours, RECORD_INDEX]
    return [ours, RECORD_INDEX, GLOBAL_BLOOM, GLOBAL_SIMPLE, Lakehub("record_index"), Lakehub("simple")]


def _summary(name: str, table: int, made: Changes) -> str:
    """As soon as it is known: a table takes an hour."""
    upserts = "".join(f", {kind} {each.upsert.seconds:.2f} s" for kind, each in made.kinds.items())
    return f"{name}: {table:,} rows loaded in {made.loaded_s:.0f} s{upserts}"


def _judge(report: Report, table: int, made: dict[str, Changes]) -> None:
    """Faster than each index of Hudi's is faster than the fastest."""
    for kind in made[OURS].kinds:
        seconds = {name: each.kinds[kind].upsert.seconds for name, each in made.items()}
        fastest = min((name for name in made if name.startswith("Hudi")), key=seconds.__getitem__)
        if kind.share in JUDGED_SHARES:
            label = f"{kind} of {table:,} with `hbase`, of {fastest}"
            report.at_most(label, seconds[OURS] / seconds[fastest], FASTER, unit="x")


def _tell_growth(report: Report, grown: dict[int, dict[str, Changes]], keys: int) -> None:
    lines = []
    for name in (OURS, RECORD_INDEX.name):
        for spread in (False, True):
            made = {table: each[name].grown[spread] for table, each in grown.items()}
            where = "spread" if spread else "clustered"
            seconds = [f"{look_up.asked_s:.3f} / {look_up.cost.seconds:.3f}" for look_up in made.values()]
            lines.append([name, where, *seconds])
            for table, look_up in made.items():
                report.figure(f"{table}_{slug_of(name)}_{where}_{keys}_keys_asked_s", look_up.asked_s)
                report.figure(f"{table}_{slug_of(name)}_{where}_{keys}_keys_read_s", look_up.cost.seconds)
            if name == OURS and len(made) > 1:
                _judge_growth(report, f"{keys:,} {where} keys, {min(made):,} to {max(made):,} rows", made)
    headings = ["index", "keys", *(f"{table:,} rows: asked / with the rows' keys, s" for table in grown)]
    report.table(f"A look-up of {keys:,} keys", headings, lines)


def _judge_growth(report: Report, label: str, made: dict[int, LookUp]) -> None:
    """Between the first table and the last."""
    first, *_, last = made.values()
    report.at_most(f"`hbase` asked for {label}", last.asked_s / first.asked_s, MAX_GROWTH, unit="x")
    grown = last.cost.seconds / first.cost.seconds
    report.at_most(f"`hbase` asked and the rows' keys read, {label}", grown, MAX_GROWTH, unit="x")


if __name__ == "__main__":
    raise SystemExit(main())
