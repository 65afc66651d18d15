"""Topics of somebody else's Kafka, captured: each message is a change of the row that its key names."""
