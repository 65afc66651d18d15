"""The tap of a cluster of Kafka: its session, and what it looks at before."""
