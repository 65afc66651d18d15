"""`manage.py topics bus`: the topics of a connection to a Kafka; `manage.py topics bus orders`: what is in one."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from lakehub.catalog.datasets.connection_change import find_connection
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.storages import STORAGES
from lakehub.catalog.storages.kafka import KafkaStorage
from lakehub.kernel.errors import NotFound

MAX_TOPICS, MAX_MESSAGES, MAX_SHOWN = 1_000, 5, 300


class Command(BaseCommand):
    help = "Shows the topics of a connection to a Kafka: their partitions and offsets, and of one its columns and some messages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("connection")
        parser.add_argument("topic", nargs="?", default="")

    def handle(self, *, connection: str, topic: str, **_: object) -> None:
        try:
            source = find_connection(connection)
            storage = STORAGES.get(source.plugin)(source.url)
            if not isinstance(storage, KafkaStorage):
                raise CommandError(
                    f"The connection {connection} has the plug-in {source.plugin}, and topics are those of `kafka`."
                )
            if topic:
                self._show_topic(storage, topic)
            else:
                self._list_topics(storage)
        except (NotFound, MetadataUnavailable) as error:
            raise CommandError(str(error)) from error

    def _list_topics(self, storage: KafkaStorage) -> None:
        for topic in storage.tables(MAX_TOPICS):
            bounds = storage.bounds(topic)
            kept = sum(each.next - each.first for each in bounds.values())
            self.stdout.write(f"{topic}: {len(bounds)} partitions, {kept:,} messages at most")

    def _show_topic(self, storage: KafkaStorage, topic: str) -> None:
        for partition, bounds in sorted(storage.bounds(topic).items()):
            self.stdout.write(f"partition {partition}: offsets {bounds.first:,} to {bounds.next:,}")
        for column in storage.describe(topic).columns:
            self.stdout.write(f"column {column.name}: {column.type}")
        for message in storage.preview(topic, MAX_MESSAGES):
            shown = f"{message.key!r}: {message.value!r}"[:MAX_SHOWN]
            self.stdout.write(f"{message.partition}:{message.offset} {message.at or 'no time'} {shown}")
