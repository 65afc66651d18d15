"""HBase as its own client sees it, which is in the JVM of the driver; and where files are staged for it."""
