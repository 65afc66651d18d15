"""What a completed write of a table says of itself, and those of them that a process has read."""
