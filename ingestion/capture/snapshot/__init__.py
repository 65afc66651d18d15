"""The rows of a table as they are, chunk by chunk and without locks, in the form in which the binlog has them."""
