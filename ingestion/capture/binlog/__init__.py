"""The binlog of MySQL and MariaDB, read as a replica does: transactions of row changes and statements, each with its position."""
