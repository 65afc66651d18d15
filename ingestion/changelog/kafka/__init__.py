"""A changelog in Kafka: a commit is a transaction of an idempotent producer, and readers see what is committed only.

A producer's position is a message of a compacted topic, in the same transaction. Offsets have gaps, where a transaction ended.
"""
