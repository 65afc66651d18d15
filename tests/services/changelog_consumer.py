"""A consumer of a changelog in twenty lines: a table of PostgreSQL that follows the source."""

from __future__ import annotations

from itertools import islice

import psycopg
from psycopg.sql import SQL, Identifier, Placeholder

from ingestion.changelog import ChangelogReader
from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.decoder import Decoder


def consume(log: ChangelogReader, decoder: Decoder, topic: str, target: psycopg.Connection, *, at_most: int) -> int:
    """The next messages, in one transaction with the offset behind them; how many."""
    key, table = decoder.key_columns, Identifier(topic)
    with target.transaction():
        row = target.execute("SELECT next FROM offsets WHERE topic = %s FOR UPDATE", [topic]).fetchone()
        messages = [*islice(log.read(topic, {"0": row[0] if row else 0}), at_most)]
        for message in messages:
            event = decoder.decode(message.value or b"", (message.offset,)).event
            if event.operation is Operation.DELETE:
                where = SQL(" AND ").join(SQL("{} = {}").format(Identifier(name), Placeholder()) for name in key)
                target.execute(SQL("DELETE FROM {} WHERE {}").format(table, where), event.row_key)
            else:
                names, values = map(Identifier, event.values), [Placeholder()] * len(event.values)
                sets = SQL(", ").join(SQL("{0} = EXCLUDED.{0}").format(Identifier(name)) for name in event.values)
                upsert = SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}").format(
                    table, SQL(", ").join(names), SQL(", ").join(values), SQL(", ").join(map(Identifier, key)), sets
                )
                target.execute(upsert, [*event.values.values()])
        offset = messages[-1].offset + 1 if messages else 0
        target.execute(
            "INSERT INTO offsets VALUES (%s, %s) ON CONFLICT (topic) DO UPDATE SET next = GREATEST(offsets.next, EXCLUDED.next)",
            [topic, offset],
        )
    return len(messages)
