"""What the errors of the changelog's Kafka say."""

from __future__ import annotations

from confluent_kafka import KafkaError

from ingestion.changelog import ChangelogError
from ingestion.changelog.kafka.address import KafkaAddress
from lakehub.source_topics.kafka_client import KafkaClient

_RIGHTS = " Give the user of the changelog's URL that right (docs/change-capture.md)."
_REMEDIES = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.INVALID_REPLICATION_FACTOR: " Write replicas= in the changelog's URL, with as many as there are brokers at most.",
    KafkaError.INVALID_TIMESTAMP: " Set the clock of this machine.",
    KafkaError.MSG_SIZE_TOO_LARGE: " Let the topic's max.message.bytes be.",
}


class Connection(KafkaClient):
    @classmethod
    def to(cls, address: KafkaAddress) -> Connection:
        return cls(address.brokers, address.login, address.timeout_s)

    def failure(self, attempt: str, problem: BaseException) -> ChangelogError:
        if silence := self.silence(attempt, problem):
            return ChangelogError(
                f"{silence} Check that it runs, that this machine reaches it, and the user and the password in the changelog's URL."
            )
        refusal, code = self.refusal(attempt, problem)
        return ChangelogError(f"{refusal}{_REMEDIES.get(code, '')}")
