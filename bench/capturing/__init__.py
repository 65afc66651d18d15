"""What the bench of change capture stands on: a MariaDB, an instance that captures it, a writer, and who measures."""
