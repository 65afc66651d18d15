"""Topics of somebody else's Kafka: all rows come with the changes, which the cluster's tap takes to the changelog."""
