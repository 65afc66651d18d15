"""What is said of a feed, as fields of a form and as facts to read."""
