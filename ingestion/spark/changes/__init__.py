"""Change events of a changelog, merged column by column into a table of the lake."""
