"""Heatpipe: change events as Avro messages, as every source writes them and every consumer reads them. No Django and no Spark.

`Encoder` checks, stamps and encodes the events of one dataset by one version of its schema; `Decoder` reads messages of any version and tells broken
ones apart (`BrokenMessage`). What an event is: `ingestion.domain.merging.events`; how it lies in Avro: `event_schema`.
"""
