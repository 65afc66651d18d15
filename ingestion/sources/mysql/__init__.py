"""Tables of a MariaDB server whose binlog is tapped: the rows that are there by chunks, then what a changelog says of them."""
