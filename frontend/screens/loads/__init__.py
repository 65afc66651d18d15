"""Where the raw chunks of a dataset lie, and loading it, or some of its rows, again."""
