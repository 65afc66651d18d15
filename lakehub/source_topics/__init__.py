"""Topics of somebody else's Kafka, as everybody reads them: the catalog, which looks at them, and the tap, which takes all that comes. No Django."""
