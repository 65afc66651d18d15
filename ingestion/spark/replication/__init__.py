"""Makes a table of one data center that of another, by its files: no row is read, and no JVM is asked."""
