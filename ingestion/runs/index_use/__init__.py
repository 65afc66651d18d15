"""What a job may use of an index cluster while it works."""
